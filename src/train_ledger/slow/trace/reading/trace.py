"""What happened on the GPU and on the host of one rank, by its trace?"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.reading.argument_values import NONE, collective, correlation, is_forward, rank
from train_ledger.slow.trace.reading.events import LARGEST_NS, Arguments, RawEvent, nanoseconds
from train_ledger.slow.trace.reading.loss import Losses
from train_ledger.slow.trace.reading.names import Category, Doing, category, doing, gpu_class
from train_ledger.slow.trace.reading.pieces import Pieces, opened
from train_ledger.slow.trace.reading.spans import Collective, Columns, Spans, Trace

__all__ = ["Collective", "Spans", "Trace", "read_trace"]

_MOST_REMEMBERED = 200_000
_DAYS_NS = 2 * 86_400 * 10**9
_OF_NO_LENGTH = frozenset("MistfCNOD")
_NO_EVENTS = "no list of events in it: this is no trace of torch's profiler"
_STEP = re.compile(r"ProfilerStep#(\d{1,12})")


def read_trace(
    path: Path,
    *,
    own_collectives: Sequence[re.Pattern[str]] = (),
    annotation: str = "",
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """Read one trace, packed or not, of any size; `progress` is told how many bytes of the file are read.

    Marks of the host called `annotation` are kept, in whichever category they are.
    Raises OSError where the file cannot be read. What in it is damaged is left out and counted in `losses`.
    """
    losses = Losses()
    table = _Table(own_collectives, annotation, losses)
    with opened(path) as file:
        pieces = Pieces(file, losses)
        for events in pieces:
            table.take(events)
            if progress:
                progress(pieces.passed_bytes)
    return table.trace(path, pieces)


class _Table:
    """Sorts events into columns; what a name means is asked for once a name."""

    def __init__(self, own: Sequence[re.Pattern[str]], annotation: str, losses: Losses) -> None:
        self._own = own
        self._annotation = annotation
        self._losses = losses
        self._gpu, self._launches, self._host, self._marks, self._waits = (Columns() for _ in range(5))
        self._steps: list[tuple[int, int, int]] = []
        self._names: dict[str, int] = {}
        self._categories: dict[str, Category] = {}
        self._classes: dict[tuple[Category, str, bool], int] = {}
        self._doings: dict[str, Doing | None] = {}
        self._collectives: dict[int, Collective] = {}
        self._places: dict[object, int] = {}
        self._has_sequence_numbers = self._has_events = False
        self._takers: dict[Category, Callable[[RawEvent], None]] = {
            Category.KERNEL: self._take_gpu,
            Category.MEMORY: self._take_gpu,
            Category.COLLECTIVE: self._take_gpu,
            Category.LAUNCH: self._take_launch,
            Category.HOST: self._take_host,
            Category.MARK: self._take_mark,
            Category.STREAM_WAIT: self._take_stream_wait,
        }

    def take(self, events: list[RawEvent]) -> None:
        # Of a large trace nearly all events come by here: calls of Python frames, whose names say nothing.
        self._has_events = self._has_events or any(event.ph for event in events)
        categories, doings, takers = self._categories, self._doings, self._takers
        for event in events:
            if event.ph != "X":
                if event.ph not in _OF_NO_LENGTH:
                    self._count_unlike(event)
                continue
            cat = event.cat
            kind = categories.get(cat)
            if kind is None:
                kind = categories[cat] = category(cat)
            if cat == "python_function" and doings.get(event.name) is Doing.NOTHING:
                continue
            taker = takers.get(kind)
            if taker is not None:
                taker(event)
            elif not cat:
                self._losses.count("an activity without a category", events=1)

    def _count_unlike(self, event: RawEvent) -> None:
        """What would be an activity if it told its phase, or its begin and end as one event."""
        if not event.ph:
            self._losses.count("an event without a phase", events=1)
        elif category(event.cat) is not Category.OTHER:
            self._losses.count(f"an activity of phase {event.ph[:8]!r}, which is not read", events=1)

    def _times(self, event: RawEvent) -> tuple[int, int] | None:
        start, length = nanoseconds(event.ts), nanoseconds(event.dur)
        if start is None or length is None or start + length >= LARGEST_NS:
            self._losses.count("an activity without a time", events=1)
            return None
        if length < 0:
            self._losses.count("an activity that ends before it starts", events=1)
            return None
        return start, start + length

    def _take_gpu(self, event: RawEvent) -> None:
        if (times := self._times(event)) is None:
            return
        if times == (0, 0):
            self._losses.count("an activity of the GPU at time 0", events=1)
            return
        args, name, kind = event.arguments(), event.name, self._categories[event.cat]
        is_told = bool(args.collective)
        code = self._classes.get((kind, name, is_told))
        if code is None:
            code = int(gpu_class(kind, name, args.collective, self._own))
            self._classes[kind, name, is_told] = code
        if is_told:
            self._collectives[len(self._gpu)] = collective(args)
        self._gpu.add(*times, code, self._name(name), self._stream(event, args), correlation(args))

    def _stream(self, event: RawEvent, args: Arguments) -> int:
        stream = args.stream if isinstance(args.stream, int | str) else event.tid
        return self._place(("gpu", event.pid, stream))

    def _take_stream_wait(self, event: RawEvent) -> None:
        if "stream wait" in event.name.lower() and (times := self._times(event)) is not None:
            stream = self._stream(event, event.arguments())
            self._waits.add(*times, 0, self._name(event.name), stream, NONE)

    def _take_launch(self, event: RawEvent) -> None:
        if (times := self._times(event)) is None:
            return
        name = event.name
        what, number = self._doing(name) or Doing.NOTHING, self._name(name)
        place = self._place((event.pid, event.tid))
        self._launches.add(*times, int(what), number, place, correlation(event.arguments()))
        if what is not Doing.NOTHING:
            self._host.add(*times, int(what), number, place, NONE)

    def _take_host(self, event: RawEvent) -> None:
        what = self._doing(event.name)
        if what is None:
            self._take_mark(event)
            return
        if what is Doing.NOTHING:
            if not self._is_forward(event):
                return
            what = Doing.FORWARD
        if (times := self._times(event)) is not None:
            place = self._place((event.pid, event.tid))
            self._host.add(*times, int(what), self._name(event.name), place, NONE)

    def _is_forward(self, event: RawEvent) -> bool:
        """Whether gradients of it are asked for: operators carry a sequence number then."""
        if b'"Sequence number"' not in bytes(event.args):
            return False
        self._has_sequence_numbers = True
        return "Backward" not in event.name and is_forward(event.arguments())

    def _take_mark(self, event: RawEvent) -> None:
        name = event.name
        if (times := self._times(event)) is None:
            return
        if step := _STEP.fullmatch(name):
            self._steps.append((int(step[1]), *times))
            return
        what = doing(name)
        place = self._place((event.pid, event.tid))
        self._marks.add(*times, int(what), self._name(name), place, NONE)
        if what is not Doing.NOTHING:
            self._host.add(*times, int(what), self._name(name), place, NONE)

    def _doing(self, name: str) -> Doing | None:
        """What a span of the host is; None for a mark, which older profilers list as an operator."""
        if name in self._doings:
            return self._doings[name]
        if len(self._doings) >= _MOST_REMEMBERED:  # names of calls hold addresses: there may be millions
            self._doings.clear()
        is_mark = name == self._annotation or name.startswith(("ProfilerStep#", "Optimizer.step#"))
        what = self._doings[name] = None if is_mark else doing(name)
        return what

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _place(self, place: object) -> int:
        try:
            return self._places.setdefault(place, len(self._places))
        except TypeError:  # a list, where a number is wanted
            return self._places.setdefault(repr(place), len(self._places))

    def trace(self, path: Path, pieces: Pieces) -> Trace:
        """What was taken, in order."""
        if not (is_trace := pieces.is_named or self._has_events):
            self._losses.count(_NO_EVENTS)
        gpu, order = self._gpu.spans()
        kept = self._of_one_time(gpu)
        now_at = np.empty(len(order), dtype=np.int64)
        now_at[order] = np.cumsum(kept) - 1
        was_kept = np.empty(len(order), dtype=bool)
        was_kept[order] = kept
        told = pieces.metadata.get("distributedInfo")
        info = told if isinstance(told, dict) else {}
        return Trace(
            file=str(path),
            rank=rank(info.get("rank")),
            world_size=rank(info.get("world_size")),
            gpu=gpu.only(kept),
            launches=self._launches.spans()[0],
            host=self._host.spans()[0],
            steps=tuple(sorted(set(self._steps), key=lambda step: step[1])),
            marks=self._marks.spans()[0],
            names=tuple(self._names),
            collectives={
                int(now_at[place]): what for place, what in self._collectives.items() if was_kept[place]
            },
            losses=self._losses,
            stream_waits=self._waits.spans()[0],
            has_python_frames="python_function" in self._categories,
            has_sequence_numbers=self._has_sequence_numbers,
            text_bytes=pieces.read_bytes,
            gpus=self._gpus(),
            metadata=pieces.metadata,
            is_trace=is_trace,
        )

    def _gpus(self) -> int:
        """The process id of an activity of a GPU is the number of that GPU."""
        return len({repr(it[1]) for it in self._places if isinstance(it, tuple) and it[0] == "gpu"})

    def _of_one_time(self, gpu: Spans) -> npt.NDArray[np.bool_]:
        """Without activities that began or ended, as they say, days before or after most others did."""
        if not len(gpu):
            return np.ones(0, dtype=bool)
        middle = gpu.start[len(gpu) // 2]
        near = np.maximum(np.abs(gpu.start - middle), np.abs(gpu.end - middle)) < _DAYS_NS
        odd = int((~near).sum())
        if odd:
            self._losses.count("an activity of the GPU days away from the others", odd, events=odd)
        return np.asarray(near, dtype=bool)
