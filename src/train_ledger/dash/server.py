"""How is something served so that a taken address is one clear line?"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket

__all__ = ["AddressUnusableError", "listening", "shown_address"]


class AddressUnusableError(OSError):
    """Nothing can be served at an address; the text says why and what to do."""


def listening(host: str, port: int, what: str) -> socket.socket:
    """A socket that listens at the address; port 0 takes a free one.

    `what` names who wants it. Raises AddressUnusableError where the address is taken, is not this
    machine's, or may not be used.
    """
    if not 0 <= port <= 65535:
        raise AddressUnusableError(f"{what}: {port} is no port; a port is a number from 0 to 65535")
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host or "(none)", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise AddressUnusableError(f"{what}: {host!r} is no address of a host: {error}") from error
    server = socket.socket(family, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            with contextlib.suppress(OSError):
                server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind(address)
        server.listen(128)
    except OSError as error:
        server.close()
        raise AddressUnusableError(f"{what}: cannot listen on {_shown(host, port)}: {_why(error)}") from error
    return server


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            "the address is in use; end whoever holds it (ss -ltnp shows who), or choose another with --port"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address; choose one of its own with --host"
    if error.errno == errno.EACCES:
        return "ports below 1024 need privileges; choose another with --port"
    return str(error.strerror or error)


def shown_address(server: socket.socket) -> str:
    """The URL at which a listening socket can be reached; of all addresses the host's name stands for one."""
    host, port = server.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"http://{_shown(host, port)}"


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
