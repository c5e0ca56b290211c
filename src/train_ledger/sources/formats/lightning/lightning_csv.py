"""What does Lightning's metrics.csv tell?

CSVLogger writes one sorted header and sparse rows: a row has cells only for what was logged together, so one
step may have several, and `step` is the index of the batch (the 50th is 49). When a key appears that was not
there before, the whole file is written anew under a longer header – its old rows are told once; when a run is
resumed the file is deleted and a new one begins (lightning fabric/loggers/csv_logs.py). A row that has not as
many cells as its header was torn, and is counted.
"""

from __future__ import annotations

import csv
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from train_ledger.facts import Event, Fact, Step
from train_ledger.sources.formats.lightning.lightning_columns import Column, columns, is_header
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_number import log_number
from train_ledger.sources.signal_lines.jsonl import LARGEST_STEP

__all__ = ["LightningCsv"]

_HEAD_BYTES = 4096
_MOST_REMEMBERED = 4_000_000


class LightningCsv:
    """metrics.csv of Lightning and of Fabric, through all its headers."""

    name: ClassVar[str] = "Lightning metrics.csv"
    marks: ClassVar[tuple[bytes, ...]] = ()
    knows: ClassVar[frozenset[str]] = frozenset({"loss", "lr"})

    def __init__(self) -> None:
        self.damaged: Counter[str] = Counter()
        self._columns: tuple[Column, ...] = ()
        self._told = _Told()

    @classmethod
    def fits(cls, head: bytes, file_name: str) -> bool:
        first, newline, _ = head.partition(b"\n")
        cells = _cells(first.decode("utf-8", "replace"))
        if cells and not newline and len(head) >= _HEAD_BYTES:  # the last name may be cut to an earlier one
            cells.pop()
        if cells is None or not is_header(cells):
            return False
        return "epoch" in cells or file_name.rpartition("/")[2] == "metrics.csv"

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        text = line.text.rstrip("\r\n")
        if not text.strip():
            return ()
        cells = _cells(text)
        if cells is None:
            self.damaged["not_csv"] += 1
            return ()
        if is_header(cells):
            self._begin(cells)
            return ()
        if not self._columns or len(cells) != len(self._columns):
            self.damaged["other_cells_than_header" if self._columns else "no_header"] += 1
            return ()
        return self._row(cells, source)

    def _begin(self, cells: Sequence[str]) -> None:
        before = {column.name for column in self._columns}
        found = columns(cells)
        if before != {column.name for column in found}:
            self._told.begin(written_anew=bool(before) and before < {column.name for column in found})
        self._columns = found

    def _row(self, cells: Sequence[str], source: str) -> Iterator[Fact]:
        numbers = [
            (column, log_number(cell)) for column, cell in zip(self._columns, cells, strict=True) if cell
        ]
        told = {column: number for column, number in numbers if number is not None}
        if len(told) < len(numbers):
            self.damaged["no_number"] += len(numbers) - len(told)
        step = next((number for column, number in told.items() if column.name == "step"), None)
        if self._told.has({column.name: number for column, number in told.items()}):
            return
        if step is None or not 0 <= step <= LARGEST_STEP:
            self.damaged["no_step"] += 1
            return
        yield from _facts(told, int(step), source)

    def end(self) -> Iterable[Fact]:
        return ()


def _cells(text: str) -> list[str] | None:
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        return None


def _facts(told: dict[Column, float], step: int, source: str) -> Iterator[Fact]:
    common = {column.field: number for column, number in told.items() if column.name == "epoch"}
    trained = {it.field: number for it, number in told.items() if not it.evaluates and not it.is_index}
    evaluated = {it.field: number for it, number in told.items() if it.evaluates}
    if trained:
        yield Step(math.nan, step, None, 0, None, source, {**common, **trained})
    if evaluated:
        yield Event(math.nan, "eval_end", None, step, 0, None, source, {**common, **evaluated})


class _Told:
    """The rows that were told of the file as it is, so that those of a rewritten one are told once."""

    def __init__(self) -> None:
        self._rows = array("q")
        self._next: int | None = None

    def begin(self, *, written_anew: bool) -> None:
        """A new header: either all rows come again before new ones, or another file has begun."""
        if not written_anew:
            self._rows = array("q")
        self._next = 0 if written_anew else None

    def has(self, row: dict[str, float]) -> bool:
        mark = hash(tuple(sorted((name, repr(number)) for name, number in row.items())))
        if self._next is not None and self._next < len(self._rows):
            if self._rows[self._next] == mark:
                self._next += 1
                return True
            self._rows = array("q")
            self._next = None
        if len(self._rows) < _MOST_REMEMBERED:
            self._rows.append(mark)
        return False
