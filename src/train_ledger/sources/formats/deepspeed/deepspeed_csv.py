"""What does DeepSpeed's csv monitor tell, whose files hold one value each, by samples and not by steps?

Its x axis is headed `step` and counts samples over all ranks. It writes one row a step, so the difference of
the first two rows is the batch, and samples over batch is the step. One rank writes for all; it appends, and
writes the header again when it was restarted. The files of one run are read beside each other, so a fact is
of no rank: what one file tells does not go back behind another's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import nan
from typing import ClassVar

from train_ledger.facts import Event, Fact, Step
from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_number import log_number
from train_ledger.sources.signal_lines.jsonl import LARGEST_STEP

__all__ = ["DeepSpeedCsv"]

_HEAD = re.compile(rb"\Astep,([^,\r\n]{1,200})\r?\n")
_NAMES = {
    "train_loss": "loss",
    "elapsed_time_ms_forward": "fwd_s",
    "elapsed_time_ms_backward": "bwd_s",
    "elapsed_time_ms_step": "opt_s",
}
_MS = "elapsed_time_ms_"


class DeepSpeedCsv:
    """An `OwnedFormat`: the column's name is the end of the file's."""

    name: ClassVar[str] = "DeepSpeed's csv monitor"
    marks: ClassVar[tuple[bytes, ...]] = ()
    knows: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.damaged: Counter[str] = Counter()
        self._field = "value"
        self._divisor = 1.0
        self._first: tuple[int, float, str] | None = None
        self._batch: int | None = None
        self._step = 0
        self._has_rows = False

    @classmethod
    def fits(cls, head: bytes, file_name: str) -> bool:
        match = _HEAD.match(head)
        tag = match[1].decode("utf-8", "replace").replace(" ", "_") if match else ""
        return match is not None and file_name.endswith(f"{tag}.csv")

    def read(self, line: LogLine, source: str) -> Iterator[Fact]:
        cells = line.text.strip().split(",")
        samples = log_number(cells[0])
        value = log_number(cells[1]) if len(cells) == 2 else None
        if cells[0] == "step" and len(cells) == 2:
            yield from self._header(cells[1], source)
        elif samples is None or value is None or not 1 <= samples <= LARGEST_STEP:
            if line.text.strip():
                self.damaged["a row that is not two numbers"] += 1
        else:
            yield from self._row(int(samples), value / self._divisor, source)

    def end(self) -> Iterator[Fact]:
        """A single row: its samples are taken as one batch."""
        if self._first is not None:
            (samples, value, source), self._first = self._first, None
            yield self._fact(samples, value, source, samples)

    def _header(self, tag: str, source: str) -> Iterator[Event]:
        own = own_name(tag)
        of_time = own.startswith(_MS)
        self._field = _NAMES.get(own, f"{own.removeprefix(_MS)}_s" if of_time else own or "value")
        self._divisor = 1e3 if of_time else 1.0
        if self._has_rows:
            yield Event(nan, "run_start", None, source=source)

    def _row(self, samples: int, value: float, source: str) -> Iterator[Step]:
        self._has_rows = True
        if self._batch is None and self._first is None:
            self._first = (samples, value, source)
            return
        if self._first is not None:
            (before, first_value, first_source), self._first = self._first, None
            self._batch = samples - before if samples > before else before
            yield self._fact(before, first_value, first_source, self._batch)
        yield self._fact(samples, value, source, self._batch or samples)

    def _fact(self, samples: int, value: float, source: str, batch: int) -> Step:
        """Where samples are no multiple (the batch grew), the step is the next one."""
        whole, rest = divmod(samples, batch)
        self._step = whole if not rest else self._step + 1
        values = {"consumed_samples": float(samples), self._field: value}
        return Step(nan, self._step, None, source=source, values=values)
