"""Where is this Prometheus, and how is it named without giving away who asks?"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

__all__ = ["Address", "PrometheusError"]

_WANTED = "an address like http://127.0.0.1:9090 is wanted"
_PORTS = {"http": 80, "https": 443}


class PrometheusError(Exception):
    """Prometheus does not answer, is none, or knows no such run; the text says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a Prometheus; `path` is what stands before /api, where a proxy serves it below one.

    `headers` carry the user's name and password, which `shown` leaves out, and `repr` too.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, url: str) -> Address:
        """The address in a URL; raises PrometheusError for what is none, without repeating it.

        >>> Address.of("http://me:secret@prometheus:9090/base/").shown
        'http://prometheus:9090/base'
        """
        try:
            parts = urlsplit(url.strip())
            host, port = parts.hostname, parts.port
        except ValueError:
            raise PrometheusError(f"the address of Prometheus is none; {_WANTED}") from None
        if parts.scheme not in _PORTS or not host or any(it.isspace() for it in url.strip()):
            raise PrometheusError(f"the address of Prometheus is none; {_WANTED}")
        return cls(parts.scheme, host, port or _PORTS[parts.scheme], parts.path.rstrip("/"), _headers(parts))

    @property
    def shown(self) -> str:
        """The address as it may be shown."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def _headers(parts: object) -> dict[str, str]:
    user, password = getattr(parts, "username", None), getattr(parts, "password", None)
    if user is None:
        return {}
    word = f"{unquote(user)}:{unquote(password or '')}".encode()
    return {"Authorization": f"Basic {base64.b64encode(word).decode()}"}
