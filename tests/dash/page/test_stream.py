"""An open page is sent what changed; of many that are open it is made once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from threading import Event
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import StreamingResponse

from train_ledger.dash.page.stream import Stream

LONG_S = 600.0
"""Nobody looks a second time in this test but the one who is told that it is over."""


class Looks:
    """Counts how often the parts were made."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> tuple[float, Mapping[str, str]]:
        self.count += 1
        return float(self.count), {"clock": f"look {self.count}", "verdict": "fine"}


def opened(stream: Stream) -> AsyncIterator[str]:
    async def receive() -> dict[str, Any]:
        await asyncio.sleep(LONG_S)
        return {"type": "http.disconnect"}

    answer = stream.answer(Request({"type": "http", "method": "GET", "headers": []}, receive))
    assert isinstance(answer, StreamingResponse)
    return cast(AsyncIterator[str], answer.body_iterator)


async def told(reader: AsyncIterator[str]) -> Any:
    return json.loads((await anext(reader)).removeprefix("data: "))


def test_what_many_look_at_is_made_once() -> None:
    looks = Looks()

    async def all_told() -> list[Any]:
        stream = Stream(looks, LONG_S, Event())
        return [await told(opened(stream)) for _ in range(8)]

    assert asyncio.run(all_told()) == [{"t": 1.0, "parts": {"clock": "look 1", "verdict": "fine"}}] * 8
    assert looks.count == 1


def test_the_last_look_is_never_an_old_one() -> None:
    looks, ending = Looks(), Event()

    async def first_and_last() -> list[Any]:
        reader = opened(Stream(looks, LONG_S, ending))
        first = await told(reader)
        ending.set()
        return [first, await told(reader), [it async for it in reader]]

    _, last, rest = asyncio.run(first_and_last())
    assert last == {"t": 2.0, "parts": {"clock": "look 2"}}
    assert rest == []


def test_whoever_has_half_an_interval_behind_them_sees_anew() -> None:
    looks = Looks()

    async def two() -> list[Any]:
        reader = opened(Stream(looks, 0.01, Event()))
        return [await told(reader), await told(reader)]

    assert [it["t"] for it in asyncio.run(two())] == [1.0, 2.0]
