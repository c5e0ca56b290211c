"""How does an open page stay current?

By server-sent events: what changed since the last look of this reader, part by part, until they leave. What
is shown is made once for all who look at about the same time, beside the loop that answers everybody else.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from threading import Event

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from train_ledger.dash.page.making import Making

__all__ = ["Stream"]

_MOST_STREAMS = 32
_LONGEST_SLEEP_S = 0.1
_KIND = "text/event-stream"

_Made = tuple[float, Mapping[str, str]]
Parts = Callable[[], _Made]
"""The moment that is shown, and the HTML of each part by its name."""


class Stream:
    """Sends what changed of `parts`, by `making`, every `interval_s` to each open page until `ending`.

    To 32 at most.
    """

    def __init__(self, parts: Parts, making: Making, interval_s: float, ending: Event) -> None:
        self._parts = parts
        self._making = making
        self._interval_s = interval_s
        self._ending = ending
        self._open = 0
        self._made: _Made = (0.0, {})
        self._fresh_until_s = -math.inf
        self._one_at_a_time = asyncio.Lock()

    def answer(self, request: Request) -> Response:
        if self._open >= _MOST_STREAMS:
            return PlainTextResponse("too many pages are open\n", status_code=503)
        if request.method == "HEAD":  # which is sent nothing, and would never end
            return Response(media_type=_KIND)
        self._open += 1  # here: many that come at once are all let in before the first is sent anything
        return _Counted(self._changes(request), self._closed)

    def _closed(self) -> None:
        self._open -= 1

    async def _changes(self, request: Request) -> AsyncIterator[str]:
        sent: dict[str, str] = {}
        is_over = False
        while not (is_over or await request.is_disconnected()):
            is_over = self._ending.is_set()  # what was found out last is still shown
            t, made = await self._shown(is_over=is_over)
            changed = {name: html for name, html in made.items() if sent.get(name) != html}
            sent.update(changed)
            yield f"data: {json.dumps({'t': t, 'parts': changed})}\n\n"
            await self._pause()

    async def _shown(self, *, is_over: bool) -> _Made:
        """What another reader was shown less than half an interval ago, else what there is now.

        At the end what was found out last is made once more, for all.
        """
        async with self._one_at_a_time:
            is_last_due = is_over and self._fresh_until_s < math.inf
            if is_last_due or time.monotonic() >= self._fresh_until_s:
                self._made = await self._making.made(self._parts)
                fresh_s = math.inf if is_over else self._interval_s / 2
                self._fresh_until_s = time.monotonic() + fresh_s
            return self._made

    async def _pause(self) -> None:
        until = time.monotonic() + self._interval_s
        while (left_s := until - time.monotonic()) > 0 and not self._ending.is_set():
            await asyncio.sleep(min(left_s, _LONGEST_SLEEP_S))


class _Counted(StreamingResponse):
    """Tells when it is over, however it ends and however early."""

    def __init__(self, content: AsyncIterator[str], closed: Callable[[], None]) -> None:
        super().__init__(content, media_type=_KIND)
        self._closed = closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._closed()
