"""How is a rank dumped that cannot answer itself?

Where Python's lock is held in C no thread of the rank runs, but torch's worker server answers on threads of
its own: POST /handler/fr_trace_json gives the Flight Recorder, without frames. Nothing else is asked of it.
"""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

from train_ledger.run_dir import write_atomically

__all__ = ["WorkerServerError", "fetch_dump"]

_TIMEOUT_S = 5.0
_MOST_BYTES = 1 << 30


class WorkerServerError(Exception):
    """The server did not give a dump; the text says why."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def fetch_dump(address: str, file: Path) -> None:
    """Write the Flight Recorder of the rank whose server answers at `address` into `file`.

    `address` is as run_start says it: "unix:/path" or "tcp:127.0.0.1:port"; another host is never asked.
    Raises WorkerServerError.
    """
    connection = _connection(address)
    try:
        connection.request("POST", "/handler/fr_trace_json")
        response = connection.getresponse()
        body = response.read(_MOST_BYTES)
        if response.status != 200 or not body:
            raise WorkerServerError(f"the worker server answered {response.status} with {len(body)} bytes")
        write_atomically(file, body)
    except (OSError, http.client.HTTPException) as error:
        raise WorkerServerError(f"the worker server at {address}: {error}") from error
    finally:
        connection.close()


def _connection(address: str) -> http.client.HTTPConnection:
    kind, _, place = address.partition(":")
    if kind == "unix":
        return _UnixConnection(place)
    host, _, port = place.rpartition(":")
    if kind == "tcp" and host == "127.0.0.1" and port.isdecimal():
        return http.client.HTTPConnection(host, int(port), timeout=_TIMEOUT_S)
    raise WorkerServerError(f"{address!r} is no address of this host")
