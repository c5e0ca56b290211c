"""How are figures of each of many ranks kept, so that all of them fit into one picture?

A row for each rank, or GPU, and a column for some steps, or seconds: the mean of what it told there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rows"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_CELLS = 1 << 19
"""A field's cells at most: 512 columns of a thousand rows, 32 of sixteen thousand."""

_MOST_COLUMNS, _FEWEST_COLUMNS = 512, 32


class Rows:
    """Sums and counts of shape (fields, rows, columns); column n holds x from `base + n * width` on.

    Rows are named by whoever adds to them, and stand in the order in which they came. Where there are too
    many columns, they become twice as wide.
    """

    def __init__(self, fields: int) -> None:
        self._fields = fields
        self.base = 0
        self.width = 1
        self.columns = 0
        self.names: list[str] = []
        self._place: dict[str, int] = {}
        self.total: Floats = np.zeros((fields, 0, 0))
        self.count: Integers = np.zeros((fields, 0, 0), np.int64)

    def add(self, name: str, xs: Integers, values: Floats) -> None:
        """Take figures of one row: `xs` rise, `values` has a row a field, nan where it told none."""
        if not len(xs):
            return
        if self.columns == 0:
            self.base = int(xs[0])
        row = self._row(name)
        self._reach(int(xs[-1]))
        # What came before the first column stands in it: rows begin within moments of each other.
        places = np.maximum(0, (xs - self.base) // self.width)
        starts = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
        at = places[starts]
        self.total[:, row, at] += np.add.reduceat(np.nan_to_num(values, nan=0.0), starts, axis=1)
        self.count[:, row, at] += np.add.reduceat(~np.isnan(values), starts, axis=1)

    def means(self) -> Floats:
        """(fields, rows, columns); nan where nothing was told."""
        with np.errstate(invalid="ignore", divide="ignore"):
            shown = self.total[..., : self.columns] / self.count[..., : self.columns]
        return shown[:, : len(self.names)]

    def _row(self, name: str) -> int:
        place = self._place.get(name)
        if place is None:
            place = self._place[name] = len(self.names)
            self.names.append(name)
            while self.columns > self._most():
                self._widen()
            if place >= self.total.shape[1]:
                self._grow(max(8, 2 * place), self.total.shape[2])
        return place

    def _most(self) -> int:
        return min(_MOST_COLUMNS, max(_FEWEST_COLUMNS, _CELLS // max(1, len(self.names))))

    def _reach(self, last: int) -> None:
        while (last - self.base) // self.width >= self._most():
            self._widen()
        self.columns = max(self.columns, (last - self.base) // self.width + 1, 1)
        if self.columns > self.total.shape[2]:
            self._grow(self.total.shape[1], min(self._most(), max(16, 2 * self.columns)))

    def _grow(self, rows: int, columns: int) -> None:
        total, count = self.total, self.count
        shape = (self._fields, max(rows, total.shape[1]), max(columns, total.shape[2]))
        self.total, self.count = np.zeros(shape), np.zeros(shape, np.int64)
        self.total[:, : total.shape[1], : total.shape[2]] = total
        self.count[:, : count.shape[1], : count.shape[2]] = count

    def _widen(self) -> None:
        self.total, self.count = _paired(self.total), _paired(self.count)
        self.width *= 2
        self.columns = (self.columns + 1) // 2

    def put(self, names: Sequence[str], total: Floats, count: Integers, *, base: int, width: int) -> None:
        """Take over what was kept; raises ValueError where it does not fit together."""
        if total.shape != count.shape or total.ndim != 3 or total.shape[:2] != (self._fields, len(names)):
            raise ValueError(f"{len(names)} rows have cells of the shapes {total.shape} and {count.shape}")
        if (total.dtype, count.dtype) != (self.total.dtype, self.count.dtype):
            raise ValueError(f"sums of {total.dtype} and counts of {count.dtype}")
        if width < 1 or len(set(names)) < len(names):
            raise ValueError("rows of the same name, or columns of no width")
        self.total, self.count = total.copy(), count.copy()
        self.base, self.width, self.columns = base, width, total.shape[2]
        self.names, self._place = [*names], {name: place for place, name in enumerate(names)}


def _paired(cells: NDArray[Any]) -> NDArray[Any]:
    if cells.shape[2] % 2:
        cells = np.pad(cells, [(0, 0), (0, 0), (0, 1)])
    paired: NDArray[Any] = cells[..., 0::2] + cells[..., 1::2]
    return paired
