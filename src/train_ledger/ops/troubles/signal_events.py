"""What did the ranks themselves write of exceptions, signals, failed saves and starts, in all attempts?

Lines of events are few among those of steps, and are found by their words without a look at the others, so
that even of long files the middle is known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from train_ledger.facts import Event
from train_ledger.run_dir import RunDir
from train_ledger.sources import SignalDecoder

__all__ = ["EventsTold", "events_told"]

_MOST_BYTES = 512 << 20
_PIECE_BYTES = 8 << 20
_MOST_EVENTS = 10_000
_WANTED = re.compile(rb'"event": ?"(?:exception|signal|ckpt_failed|run_start|ckpt_saved)"')


class EventsTold(NamedTuple):
    """Events with their place ("signals/rank_00005.jsonl:88"), and how many bytes were not looked at."""

    events: tuple[Event, ...]
    left_out_bytes: int = 0


def events_told(
    run_dir: RunDir, names: frozenset[str] | None = None, ranks: Collection[int] | None = None
) -> EventsTold:
    """The events in the signals of `ranks` (None: of all), those called `names` (None: all looked for)."""
    found: list[Event] = []
    left_out, budget = 0, _MOST_BYTES
    for rank, path in run_dir.signal_files():
        if ranks is not None and rank not in ranks:
            continue
        try:
            size = os.path.getsize(path)
            if size > budget or len(found) >= _MOST_EVENTS:
                left_out += size
                continue
            budget -= size
            found += (it for it in _of_file(run_dir, rank, path) if names is None or it.name in names)
        except OSError:
            left_out += 1
    return EventsTold(tuple(found), left_out)


def _of_file(run_dir: RunDir, rank: int, path: Path) -> Iterator[Event]:
    decoder, number, host = SignalDecoder(), 1, None
    shown = os.path.relpath(path, run_dir.path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(fd, "rb") as file:
        rest = b""
        while piece := file.read(_PIECE_BYTES):
            whole, _, rest = (rest + piece).rpartition(b"\n")
            for line_number, line in _lines(whole, number):
                fact = decoder.decode(line, f"{shown}:{line_number}", rank=rank, host=host)
                if isinstance(fact, Event):
                    host = fact.host or host
                    yield fact
            number += whole.count(b"\n") + 1 if whole else 0


def _lines(data: bytes, first_number: int) -> Iterator[tuple[int, bytes]]:
    """The lines in which one of the words stands, with their numbers."""
    at, number = 0, first_number
    for match in _WANTED.finditer(data):
        if match.start() < at:
            continue
        begin = data.rfind(b"\n", 0, match.start()) + 1
        end = data.find(b"\n", match.end())
        end = len(data) if end < 0 else end
        number += data.count(b"\n", at, begin)
        yield number, data[begin:end]
        at = begin
