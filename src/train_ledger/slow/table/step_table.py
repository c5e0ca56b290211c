"""What did each rank tell of each step, as arrays of ranks × steps?

Everything in this room works on it. A value that a rank did not tell is NaN.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from train_ledger.slow.table.layout import Place

__all__ = ["Flags", "Floats", "Ints", "Marks", "StepTable"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Marks:
    """Steps that are none to go by, each an array of `steps` flags.

    checkpoint and evaluation: one stood in the step of some rank; restart: the first step of an attempt;
    warm_up: that and those after it; gc: a rank's garbage collection took a part of the step that shows.
    """

    checkpoint: Flags
    evaluation: Flags
    restart: Flags
    warm_up: Flags
    gc: Flags

    def of(self, columns: slice | Flags) -> Marks:
        """The marks of some of the steps."""
        return Marks(
            self.checkpoint[columns],
            self.evaluation[columns],
            self.restart[columns],
            self.warm_up[columns],
            self.gc[columns],
        )


@dataclass(frozen=True, slots=True)
class StepTable:
    """The newest steps of one attempt of a run.

    `places` has one entry a row, `steps` one number a column; `t` (unix s, each by its host's clock) and each
    of `values` have the shape (ranks, steps), with the fields' names and units of `train_ledger.fields`, and
    besides `tokens` of the rank in the step, `tokens_squared` (the sum of the squared lengths of its
    sequences) and, of logs, `span_…_s` and `…_min_s`. `earlier` is the end of the attempt before, as far as
    it was read on the way. `odd` counts values that can be none (negative, not finite), `damaged` lines that
    were not understood. `of_all` says that one log speaks for all ranks: its only row is nobody's own.
    """

    places: tuple[Place, ...]
    attempt: int
    steps: Ints
    t: Floats
    values: Mapping[str, Floats]
    marks: Marks
    layout_told: bool = True
    of_all: bool = False
    earlier: StepTable | None = None
    world_size: int | None = None
    odd: Mapping[str, int] = field(default_factory=Counter)
    damaged: Mapping[str, int] = field(default_factory=Counter)
    read_bytes: int = 0

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(place.rank for place in self.places)

    @property
    def hosts(self) -> tuple[str | None, ...]:
        return tuple(place.host for place in self.places)

    @property
    def stages(self) -> tuple[int | None, ...]:
        return tuple(place.stage for place in self.places)

    @property
    def gpus(self) -> tuple[str | None, ...]:
        """The uuid of each rank's GPU."""
        return tuple(place.uuid for place in self.places)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.places), len(self.steps)

    @property
    def steady(self) -> Flags:
        """Which steps are to go by: no checkpoint, evaluation, restart or warm-up stood in them."""
        marks = self.marks
        return ~(marks.checkpoint | marks.evaluation | marks.restart | marks.warm_up)

    def of(self, name: str) -> Floats:
        """The values of a field; NaN everywhere where nobody told it."""
        told = self.values.get(name)
        return np.full(self.shape, np.nan) if told is None else told

    def tells(self, name: str) -> bool:
        """Whether anybody told this field."""
        told = self.values.get(name)
        return told is not None and bool(np.isfinite(told).any())

    def increase(self, name: str) -> Floats:
        """By how much a counter rose in each step, since the rank's step before; NaN where it fell."""
        told = self.of(name)
        risen = np.full(self.shape, np.nan)
        if told.shape[1] > 1:
            risen[:, 1:] = np.diff(told, axis=1)
        risen[risen < 0] = np.nan
        return risen

    def between(self, first_step: int | None = None, last_step: int | None = None) -> StepTable:
        """The same table of some steps only, both ends included."""
        low = 0 if first_step is None else int(np.searchsorted(self.steps, first_step))
        high = len(self.steps) if last_step is None else int(np.searchsorted(self.steps, last_step, "right"))
        return self.columns(slice(low, high))

    def newest(self, count: int) -> StepTable:
        """The same table of its newest steps only."""
        return self.columns(slice(max(0, len(self.steps) - count), None))

    def columns(self, wanted: slice | Flags) -> StepTable:
        """The same table of some columns only."""
        return replace(
            self,
            steps=self.steps[wanted],
            t=self.t[:, wanted],
            values={name: told[:, wanted] for name, told in self.values.items()},
            marks=self.marks.of(wanted),
        )

    def rows(self, wanted: Sequence[int]) -> StepTable:
        """The same table of some rows only, by their places in the table."""
        chosen = list(wanted)
        return replace(
            self,
            places=tuple(self.places[row] for row in chosen),
            t=self.t[chosen],
            values={name: told[chosen] for name, told in self.values.items()},
        )
