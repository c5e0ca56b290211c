"""How is what happened kept: one array a property, one entry an activity?"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.reading.loss import Losses

__all__ = ["Collective", "Columns", "Nanoseconds", "Spans", "Trace"]

Nanoseconds: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Collective:
    """What a kernel's arguments say of the collective that it is part of.

    `number` counts the collectives of its group, `described` is what the group is for ("pp", "default_pg").
    """

    name: str
    group: str
    elements: int | None
    dtype: str
    number: int | None = None
    described: str = ""


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

    `collectives` maps the place of an activity in `gpu` to what is told of its collective; `stream_waits` are
    when streams of the GPU began to wait for other streams, where that was recorded.
    `has_python_frames` says that Python's calls were recorded, `has_sequence_numbers` that operators of
    forward passes carry theirs: what is not among them was not called. `gpus` are of how many there are
    activities. `is_trace` says that there is a list of events at all.
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
    stream_waits: Spans
    has_python_frames: bool = False
    has_sequence_numbers: bool = False
    text_bytes: int = 0
    gpus: int = 1
    metadata: dict[str, Any] = field(default_factory=dict)
    is_trace: bool = True

    @property
    def base_ns(self) -> int:
        """What all times count from, in nanoseconds since 1970 on this rank's clock; 0: not told."""
        told = self.metadata.get("baseTimeNanoseconds")
        return told if type(told) is int and 0 <= told < 1 << 61 else 0


class Columns:
    """Activities of one kind as they come, one behind the other."""

    def __init__(self) -> None:
        self._values = array("q")
        self._extend = self._values.extend

    def __len__(self) -> int:
        return len(self._values) // len(_COLUMNS)

    def add(self, *row: int) -> None:
        """One value a column."""
        self._extend(row)

    def spans(self) -> tuple[Spans, Nanoseconds]:
        """Sorted by start; and from which place each came."""
        table = np.frombuffer(self._values, dtype=np.int64).reshape(-1, len(_COLUMNS))
        order = np.lexsort((-table[:, 1], table[:, 0]))
        return Spans(*(table[order, column] for column in range(len(_COLUMNS)))), order
