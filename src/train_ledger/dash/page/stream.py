"""How does an open page stay current?

By server-sent events: what changed since the last look of this reader, part by part, until they leave.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from threading import Event

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

__all__ = ["Stream"]

_MOST_STREAMS = 32
_LONGEST_SLEEP_S = 0.1

Parts = Callable[[], tuple[float, Mapping[str, str]]]
"""The moment that is shown, and the HTML of each part by its name."""


class Stream:
    """Sends what changed every `interval_s` to each open page, until `ending` is set; to 32 at most."""

    def __init__(self, interval_s: float, ending: Event) -> None:
        self._interval_s = interval_s
        self._ending = ending
        self._open = 0

    def answer(self, request: Request, parts: Parts) -> Response:
        if self._open >= _MOST_STREAMS:
            return PlainTextResponse("too many pages are open\n", status_code=503)
        return StreamingResponse(self._changes(request, parts), media_type="text/event-stream")

    async def _changes(self, request: Request, parts: Parts) -> AsyncIterator[str]:
        self._open += 1
        sent: dict[str, str] = {}
        try:
            is_over = False
            while not (is_over or await request.is_disconnected()):
                is_over = self._ending.is_set()  # what was found out last is still shown
                t, made = parts()
                changed = {name: html for name, html in made.items() if sent.get(name) != html}
                sent.update(changed)
                yield f"data: {json.dumps({'t': t, 'parts': changed})}\n\n"
                await self._pause()
        finally:
            self._open -= 1

    async def _pause(self) -> None:
        until = time.monotonic() + self._interval_s
        while (left_s := until - time.monotonic()) > 0 and not self._ending.is_set():
            await asyncio.sleep(min(left_s, _LONGEST_SLEEP_S))
