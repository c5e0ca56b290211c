"""Whom does the page answer, and what may a browser do with the answer?

GET and HEAD only. What is bound to the loopback answers only to the loopback's names, or any web site could
have a browser ask it under a name of its own (DNS rebinding). What is bound elsewhere wants a token: in the
address, once, then in a cookie, or as a bearer's. The metrics, and that the process lives, are open to
whoever may reach the port, as the exporters' are: they hold no line of any log.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_COOKIE = "train_ledger_token"
_HOST = re.compile(
    r"(?:\[(?P<ipv6>[0-9a-f:]*:[0-9a-f:.]*)\]|(?P<name>[^][:]*))(?::[0-9]*)?", re.ASCII | re.IGNORECASE
)
_OPEN = frozenset({"/metrics", "/healthz"})


class Guard:
    """Refuses what is not for us, and puts the same headers onto every answer, unless it has its own."""

    def __init__(self, app: ASGIApp, *, loopback: bool, token: str | None = None) -> None:
        self._app = app
        self._loopback = loopback
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return  # no web socket is served here: none is let past the token

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._instead(scope)
        await (answer or self._app)(scope, receive, send_guarded)

    def _instead(self, scope: Scope) -> Response | None:
        """What is answered instead of what was asked for; None where it may be had."""
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse(
                "the page is read-only\n", status_code=405, headers={"Allow": "GET, HEAD"}
            )
        if self._loopback and not is_loopback(Headers(scope=scope).get("host", "")):
            return PlainTextResponse("this page answers only to localhost\n", status_code=421)
        if self._token is None or scope["path"] in _OPEN:
            return None
        return self._of_token(scope, self._token)

    def _of_token(self, scope: Scope, token: str) -> Response | None:
        headers = Headers(scope=scope)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if any(name == "token" and _same(value, token) for name, value in query):
            return _remembered(scope, [pair for pair in query if pair[0] != "token"], token)
        bearer = headers.get("authorization", "").partition(" ")
        if bearer[0].lower() == "bearer" and _same(bearer[2].strip(), token):
            return None
        if _same(_cookie(headers.get("cookie", ""), _cookie_name(token)), token):
            return None
        return PlainTextResponse(
            "a token is wanted: open the address that `train-ledger watch` printed when it began\n",
            status_code=401,
            headers={"WWW-Authenticate": "Bearer"},
        )


def _remembered(scope: Scope, query: list[tuple[str, str]], token: str) -> Response:
    """The same page without the token in its address, where it would stand in histories and screenshots."""
    path = quote(scope["path"]).lstrip("/")
    answer = RedirectResponse(f"/{path}" + (f"?{urlencode(query)}" if query else ""), status_code=303)
    answer.set_cookie(_cookie_name(token), token, httponly=True, samesite="strict", path="/")
    return answer


def _cookie_name(token: str) -> str:
    """Each keeper of a host its own: a browser sends a cookie to all ports, and would forget the others'."""
    return f"{_COOKIE}_{hashlib.sha256(token.encode()).hexdigest()[:8]}"


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _same(told: str, token: str) -> bool:
    return hmac.compare_digest(told.encode("utf-8", "replace"), token.encode())


def is_loopback(host: str) -> bool:
    """Whether a Host header names this machine's loopback, by whichever port (a tunnel has its own)."""
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    if (match["name"] or "").lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(match["name"] or match["ipv6"]).is_loopback
    except ValueError:
        return False
