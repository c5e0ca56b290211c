"""When at the latest was it raised, where a traceback tells no time and the line behind it does?

What a program caught, printed and went on from stands in its log before lines with times. Read is a little
behind each traceback; a line that was cut away, or a file that is gone, tells nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from train_ledger.ops.troubles.trouble import Trouble
from train_ledger.run_dir import RunDir
from train_ledger.sources.lines.log_line import read_line
from train_ledger.sources.lines.log_time import TIME, log_time

__all__ = ["with_latest_times"]

_SOURCE = re.compile(r"(?P<file>.+?)(?:@(?P<byte>\d{1,15}))?:(?P<line>\d{1,9})")
_IN_FRONT = re.compile(rf"\W{{0,2}}(?P<time>{TIME})(?!\d)")
_RAISED = ("exception", "oom")
_MOST = 200
_BEHIND = 64
_LONGEST = 4096
_CLOCKS_S = 2.0
_MATTERS_S = 60.0
"""A line is written some seconds later than what it tells of: what is closer than this decides nothing."""


def with_latest_times(found: Iterable[Trouble], run_dir: RunDir) -> list[Trouble]:
    """The troubles; what was raised at no time of its own was raised before the next time that its log tells.

    A time before `earliest_t` is none of that line's writing, and is passed over. One that is within a minute
    of what is known already changes nothing.
    """
    asked = 0
    told: list[Trouble] = []
    for it in found:
        if it.kind in _RAISED and it.t is not None and it.earliest_t != it.t and asked < _MOST:
            asked += 1
            it = _bounded(it, run_dir.path)
        told.append(it)
    return told


def _bounded(it: Trouble, folder: Path) -> Trouble:
    place = _SOURCE.fullmatch(it.source)
    if place is None or it.t is None:
        return it
    least_t = float("-inf") if it.earliest_t is None else it.earliest_t - _CLOCKS_S
    times = _times_behind(folder / place["file"], int(place["byte"] or 0), int(place["line"]), it.t)
    t = next((t for t in times if t >= least_t), it.t)
    return it if it.t - t < _MATTERS_S else replace(it, t=t)


def _times_behind(path: Path, byte: int, line: int, written_t: float) -> Iterator[float]:
    try:
        with path.open("rb") as file:
            file.seek(byte)
            for data in islice(file, line, line + _BEHIND):
                t = _time_of(data[:_LONGEST], written_t)
                if t is not None:
                    yield t
    except OSError:
        return


def _time_of(data: bytes, written_t: float) -> float | None:
    told = read_line(data, written_t)
    in_front = _IN_FRONT.match(told.text)
    return told.t if told.t is not None or in_front is None else log_time(in_front["time"])
