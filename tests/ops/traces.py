"""What must hold of any trace, by the rules of the Chrome trace event format and of Perfetto."""

from __future__ import annotations

import gzip
import io
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from train_ledger.ops.gantt import Gantt, Selection, TraceFile

Event = dict[str, Any]


def drawn(
    *paths: Path, selection: Selection | None = None, counters: Iterable[str] = ()
) -> tuple[Gantt, list[Event]]:
    """The Gantt of these paths, and its events, which keep the rules."""
    file = io.BytesIO()
    gantt = Gantt(paths, selection or Selection(), tuple(counters))
    gantt.draw(TraceFile(file, gz=True))
    return gantt, sound_events(file.getvalue())


def sound_events(content: bytes) -> list[Event]:
    """The events of a trace; raises AssertionError where it breaks a rule."""
    data = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    trace = json.loads(data, parse_constant=_no_json)
    events: list[Event] = trace["traceEvents"]
    named = {(it["pid"], it["tid"]) for it in events if it["name"] == "thread_name"}
    slices: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events:
        assert event["ph"] in ("X", "i", "C", "M")
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            continue
        assert isinstance(event["ts"], int)
        assert (event["pid"], event["tid"]) in named
        if event["ph"] == "X":
            assert event["dur"] >= 0
            slices[event["pid"], event["tid"]].append(event)
        elif event["ph"] == "i":
            assert event["s"] in ("t", "p", "g")
    for of_thread in slices.values():
        assert_nested([(it["ts"], it["ts"] + it["dur"]) for it in of_thread])
    threads = [tid for _, tid in slices]
    assert len(threads) == len(set(threads))  # Perfetto looks threads up by number alone
    return events


def _no_json(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def assert_nested(spans: list[tuple[int, int]]) -> None:
    """Any two lie apart or one holds the other; of two that begin at once the outer one comes first."""
    ends: list[int] = []
    for start, end in sorted(spans, key=lambda span: span[0]):
        while ends and ends[-1] <= start:
            ends.pop()
        assert not ends or end <= ends[-1], (start, end, ends)
        ends.append(end)


def of(events: list[Event], **wanted: Any) -> list[Event]:
    """The events that have these values."""
    return [it for it in events if all(it.get(key) == value for key, value in wanted.items())]
