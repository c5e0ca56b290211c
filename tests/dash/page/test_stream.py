"""An open page is sent what changed; of many that are open it is made once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from threading import Event
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import StreamingResponse

from train_ledger.dash.page.making import Making
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
        stream = Stream(looks, Making(), LONG_S, Event())
        return [await told(opened(stream)) for _ in range(8)]

    assert asyncio.run(all_told()) == [{"t": 1.0, "parts": {"clock": "look 1", "verdict": "fine"}}] * 8
    assert looks.count == 1


def test_many_that_look_at_the_same_moment_wait_for_one_and_the_same() -> None:
    looks = Looks()

    async def all_told() -> list[Any]:
        stream = Stream(looks, Making(), LONG_S, Event())
        return await asyncio.gather(*(told(opened(stream)) for _ in range(8)))

    assert [it["t"] for it in asyncio.run(all_told())] == [1.0] * 8
    assert looks.count == 1


def test_others_are_answered_while_it_is_made() -> None:
    """The look waits for what the loop does after it has begun; on the loop it would wait for itself."""
    goes_on = Event()

    def look() -> tuple[float, Mapping[str, str]]:
        return float(goes_on.wait(20.0)), {}

    async def both() -> Any:
        reading = asyncio.create_task(told(opened(Stream(look, Making(), LONG_S, Event()))))
        await asyncio.sleep(0)
        goes_on.set()
        return await reading

    assert asyncio.run(both()) == {"t": 1.0, "parts": {}}


def test_at_the_end_the_last_look_is_made_once_for_all() -> None:
    looks, ending = Looks(), Event()

    async def all_told() -> list[Any]:
        stream = Stream(looks, Making(), LONG_S, ending)
        readers = [opened(stream) for _ in range(8)]
        for reader in readers:
            await told(reader)
        ending.set()
        return await asyncio.gather(*map(told, readers))

    assert [it["t"] for it in asyncio.run(all_told())] == [2.0] * 8
    assert looks.count == 2


def test_the_last_look_is_never_an_old_one() -> None:
    looks, ending = Looks(), Event()

    async def first_and_last() -> list[Any]:
        reader = opened(Stream(looks, Making(), LONG_S, ending))
        first = await told(reader)
        ending.set()
        return [first, await told(reader), [it async for it in reader]]

    _, last, rest = asyncio.run(first_and_last())
    assert last == {"t": 2.0, "parts": {"clock": "look 2"}}
    assert rest == []


def test_whoever_has_half_an_interval_behind_them_sees_anew() -> None:
    looks = Looks()

    async def two() -> list[Any]:
        reader = opened(Stream(looks, Making(), 0.01, Event()))
        return [await told(reader), await told(reader)]

    assert [it["t"] for it in asyncio.run(two())] == [1.0, 2.0]
