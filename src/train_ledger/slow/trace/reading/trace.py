"""What happened on the GPU and on the host of one rank, in arrays of nanoseconds?"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.reading.events import Arguments, RawEvent, nanoseconds
from train_ledger.slow.trace.reading.loss import Losses
from train_ledger.slow.trace.reading.names import Category, Doing, category, doing, gpu_class
from train_ledger.slow.trace.reading.pieces import Pieces, opened

__all__ = ["Collective", "Spans", "Trace", "read_trace"]

Nanoseconds = npt.NDArray[np.int64]
_NONE = -1
_STEP = re.compile(r"ProfilerStep#(\d{1,12})")


@dataclass(frozen=True, slots=True)
class Collective:
    """What a kernel's arguments say of the collective that it is part of."""

    name: str
    group: str
    elements: int | None
    dtype: str


@dataclass(frozen=True, slots=True)
class Spans:
    """Activities of one kind, by their starts. All arrays have one entry an activity.

    `kind` is a `GpuClass` on the GPU and a `Doing` on the host; `name` an index into `Trace.names`; `place` a
    stream or a thread; `correlation` joins a launch to what it launched, −1 where none is told.
    """

    start: Nanoseconds
    end: Nanoseconds
    kind: Nanoseconds
    name: Nanoseconds
    place: Nanoseconds
    correlation: Nanoseconds

    def __len__(self) -> int:
        return len(self.start)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Spans:
        """Those for which `chosen` is true."""
        return Spans(*(getattr(self, name)[chosen] for name in _COLUMNS))


_COLUMNS = ("start", "end", "kind", "name", "place", "correlation")


@dataclass(frozen=True, slots=True)
class Trace:
    """One rank's trace. `steps` are the host's step marks as (number, start, end), in order of time.

    `collectives` maps the place of an activity in `gpu` to what is told of its collective.
    `has_python_frames` says that Python's calls were recorded: what is not among them was not called.
    """

    file: str
    rank: int | None
    world_size: int | None
    gpu: Spans
    launches: Spans
    host: Spans
    steps: tuple[tuple[int, int, int], ...]
    marks: Spans
    names: tuple[str, ...]
    collectives: dict[int, Collective]
    losses: Losses
    has_python_frames: bool = False
    text_bytes: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)


def read_trace(
    path: Path,
    *,
    own_collectives: Sequence[re.Pattern[str]] = (),
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """Read one trace, packed or not, of any size; `progress` is told the bytes of text read so far.

    Raises OSError where the file cannot be read. What in it is damaged is left out and counted in `losses`.
    """
    losses = Losses()
    table = _Table(own_collectives, losses)
    with opened(path) as file:
        pieces = Pieces(file, losses)
        for events in pieces:
            table.take(events)
            if progress:
                progress(pieces.read_bytes)
    return table.trace(path, pieces)


class _Columns:
    """Activities of one kind as they come."""

    def __init__(self) -> None:
        self.values = {name: array("q") for name in _COLUMNS}
        self._append = [self.values[name].append for name in _COLUMNS]

    def add(self, *row: int) -> None:
        for append, value in zip(self._append, row, strict=True):
            append(value)

    def spans(self) -> tuple[Spans, Nanoseconds]:
        """Sorted by start; and from which place each came."""
        arrays = {name: np.frombuffer(values, dtype=np.int64).copy() for name, values in self.values.items()}
        order = np.lexsort((-arrays["end"], arrays["start"]))
        return Spans(**{name: values[order] for name, values in arrays.items()}), order


class _Table:
    """Sorts events into columns; what a name means is asked for once a name."""

    def __init__(self, own: Sequence[re.Pattern[str]], losses: Losses) -> None:
        self._own = own
        self._losses = losses
        self._gpu, self._launches, self._host, self._marks = (_Columns() for _ in range(4))
        self._steps: list[tuple[int, int, int]] = []
        self._names: dict[str, int] = {}
        self._categories: dict[object, Category] = {}
        self._classes: dict[tuple[str, bool], int] = {}
        self._doings: dict[str, Doing] = {}
        self._collectives: dict[int, Collective] = {}
        self._places: dict[object, int] = {}
        self._has_python_frames = False

    def take(self, events: list[RawEvent]) -> None:
        takers: dict[Category, Callable[[RawEvent], None]] = {
            Category.KERNEL: partial(self._take_gpu, Category.KERNEL),
            Category.MEMORY: partial(self._take_gpu, Category.MEMORY),
            Category.LAUNCH: self._take_launch,
            Category.HOST: self._take_host,
            Category.MARK: self._take_mark,
        }
        categories = self._categories
        for event in events:
            kind = categories.get(event.cat)
            if kind is None:
                kind = categories[event.cat] = category(str(event.cat))
            taker = takers.get(kind)
            if taker is not None and event.ph == "X":
                taker(event)
                self._has_python_frames = self._has_python_frames or event.cat == "python_function"

    def _times(self, event: RawEvent) -> tuple[int, int] | None:
        start, length = nanoseconds(event.ts), nanoseconds(event.dur)
        if start is None or length is None:
            self._losses.count("an activity without a time", events=1)
            return None
        if length < 0:
            self._losses.count("an activity that ends before it starts", events=1)
            return None
        return start, start + length

    def _take_gpu(self, kind: Category, event: RawEvent) -> None:
        if (times := self._times(event)) is None:
            return
        if times == (0, 0):
            self._losses.count("an activity of the GPU at time 0", events=1)
            return
        args, name = event.args or _NO_ARGUMENTS, _text(event.name)
        is_told = bool(args.collective)
        code = self._classes.get((name, is_told))
        if code is None:
            code = int(gpu_class(kind, name, args.collective, self._own))
            self._classes[name, is_told] = code
        if is_told:
            self._collectives[len(self._gpu.values["start"])] = _collective(args)
        stream = args.stream if args.stream is not None else event.tid
        place = self._place(("gpu", event.pid, stream))
        self._gpu.add(*times, code, self._name(name), place, _whole(args.correlation))

    def _take_launch(self, event: RawEvent) -> None:
        if (times := self._times(event)) is None:
            return
        name = _text(event.name)
        what, place = self._doing(name), self._place((event.pid, event.tid))
        args = event.args or _NO_ARGUMENTS
        self._launches.add(*times, int(what), self._name(name), place, _whole(args.correlation))
        if what is not Doing.NOTHING:
            self._host.add(*times, int(what), self._name(name), place, _NONE)

    def _take_host(self, event: RawEvent) -> None:
        name = _text(event.name)
        what = self._doing(name)
        if what is Doing.NOTHING or (times := self._times(event)) is None:
            return
        self._host.add(*times, int(what), self._name(name), self._place((event.pid, event.tid)), _NONE)

    def _take_mark(self, event: RawEvent) -> None:
        name = _text(event.name)
        if (times := self._times(event)) is None:
            return
        if step := _STEP.fullmatch(name):
            self._steps.append((int(step[1]), *times))
            return
        place = self._place((event.pid, event.tid))
        self._marks.add(*times, int(self._doing(name)), self._name(name), place, _NONE)
        if (what := self._doing(name)) is not Doing.NOTHING:
            self._host.add(*times, int(what), self._name(name), place, _NONE)

    def _doing(self, name: str) -> Doing:
        known = self._doings.get(name)
        if known is None:
            known = self._doings[name] = doing(name)
        return known

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _place(self, place: object) -> int:
        return self._places.setdefault(place, len(self._places))

    def trace(self, path: Path, pieces: Pieces) -> Trace:
        """What was taken, in order."""
        gpu, order = self._gpu.spans()
        now_at = np.empty(len(order), dtype=np.int64)
        now_at[order] = np.arange(len(order))
        told = pieces.metadata.get("distributedInfo")
        info = told if isinstance(told, dict) else {}
        return Trace(
            file=str(path),
            rank=_rank(info.get("rank")),
            world_size=_rank(info.get("world_size")),
            gpu=gpu,
            launches=self._launches.spans()[0],
            host=self._host.spans()[0],
            steps=tuple(sorted(self._steps, key=lambda step: step[1])),
            marks=self._marks.spans()[0],
            names=tuple(self._names),
            collectives={int(now_at[place]): what for place, what in self._collectives.items()},
            losses=self._losses,
            has_python_frames=self._has_python_frames,
            text_bytes=pieces.read_bytes,
            metadata=pieces.metadata,
        )


_NO_ARGUMENTS = Arguments()


def _text(name: object) -> str:
    return name if isinstance(name, str) else str(name)


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62:
        return value
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    return _NONE


def _rank(value: object) -> int | None:
    number = _whole(value)
    return number if number >= 0 else None


def _collective(args: Arguments) -> Collective:
    elements = _whole(args.elements)
    group = " ".join(str(it) for it in (args.group, args.group_ranks) if it is not None)
    return Collective(
        str(args.collective),
        group,
        elements if elements >= 0 else None,
        "" if args.dtype is None else str(args.dtype),
    )
