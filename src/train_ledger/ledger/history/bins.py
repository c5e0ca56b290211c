"""How are figures of many ranks and steps kept in a bounded number of bins?

A bin holds some steps in a row. Where there would be too many, bins become twice as wide and neighbours are
put together, so that what is kept of a long run is bounded, and none of it is ever left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bins"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FIRST_ROOM = 64
_ARRAYS = ("low", "high", "total", "count", "odd", "worst", "first_t", "last_t")


class Bins:
    """Of each of `fields` figures its least, its largest, its sum and how many, for each bin of steps.

    `worst` is the rank whose figure was the largest, -1 where there is none, and `odd` counts figures that
    were no finite numbers. `first_t` and `last_t` are when the first and the last step of a bin were
    completed, by the ranks' own clocks. Bin n holds the steps from `base + n * width` on. Shapes: (fields,
    bins), and (bins,) for times. At most `most` bins are kept.
    """

    def __init__(self, fields: int, most: int = 8192, width: int = 1) -> None:
        self._fields = fields
        self._most = most
        self.width = width
        self.base = 0
        self.bins = 0
        self._room(0)

    def _room(self, bins: int) -> None:
        shape = (self._fields, bins)
        self.low: Floats = np.full(shape, np.nan)
        self.high: Floats = np.full(shape, np.nan)
        self.total: Floats = np.zeros(shape)
        self.count: Integers = np.zeros(shape, np.int64)
        self.odd: Integers = np.zeros(shape, np.int64)
        self.worst: Integers = np.full(shape, -1, np.int64)
        self.first_t: Floats = np.full(bins, np.nan)
        self.last_t: Floats = np.full(bins, np.nan)

    def add(
        self, rank: int, steps: Integers, times: Floats, values: Floats, odd: NDArray[np.bool_] | None = None
    ) -> None:
        """Take figures of one rank: `steps` rise, `values` has a row a field, nan where it told none.

        `odd` marks, of the same shape, what was told and is no finite number.
        """
        if not len(steps):
            return
        self._reach(int(steps[0]), int(steps[-1]))
        places = (steps - self.base) // self.width
        starts = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
        at = places[starts]
        self._take_extremes(rank, at, values, starts)
        self.total[:, at] += np.add.reduceat(np.nan_to_num(values, nan=0.0), starts, axis=1)
        self.count[:, at] += np.add.reduceat(~np.isnan(values), starts, axis=1)
        if odd is not None:
            self.odd[:, at] += np.add.reduceat(odd, starts, axis=1)
        self.first_t[at] = np.fmin(self.first_t[at], np.fmin.reduceat(times, starts))
        self.last_t[at] = np.fmax(self.last_t[at], np.fmax.reduceat(times, starts))

    def _take_extremes(self, rank: int, at: Integers, values: Floats, starts: Integers) -> None:
        self.low[:, at] = np.fmin(self.low[:, at], np.fmin.reduceat(values, starts, axis=1))
        largest = np.fmax.reduceat(values, starts, axis=1)
        before = self.high[:, at]
        is_larger = ~np.isnan(largest) & (np.isnan(before) | (largest > before))
        self.high[:, at] = np.where(is_larger, largest, before)
        self.worst[:, at] = np.where(is_larger, rank, self.worst[:, at])

    def _reach(self, first: int, last: int) -> None:
        """Make room for the bins of these steps, of a run that may go back behind its first step."""
        if self.bins == 0:
            self.base = first - first % self.width
        if first < self.base:
            self._shift((self.base - first + self.width - 1) // self.width)
        while (last - self.base) // self.width >= self._most:
            self._widen()
        self.bins = max(self.bins, (last - self.base) // self.width + 1)
        room = len(self.first_t)
        if self.bins > room:
            self._grow(max(self.bins, min(self._most, 2 * room), _FIRST_ROOM))

    def _shift(self, bins: int) -> None:
        """Put so many empty bins before the first one."""
        old, kept = self.arrays(), self.bins
        while kept + bins > self._most:
            self._widen()
            old, kept, bins = self.arrays(), self.bins, (bins + 1) // 2
        self._room(kept + bins)
        for name, array in old.items():
            getattr(self, name)[..., bins:] = array
        self.base -= bins * self.width
        self.bins = kept + bins

    def _grow(self, room: int) -> None:
        old = self.arrays(whole=True)
        self._room(room)
        for name, array in old.items():
            getattr(self, name)[..., : array.shape[-1]] = array

    def _widen(self) -> None:
        """Bins of twice the width; their borders stay multiples of it."""
        wide = 2 * self.width
        lead = (self.base % wide) // self.width
        paired = [*_paired(self.arrays(), lead)]
        self.base -= lead * self.width
        self.width = wide
        self.bins = (self.bins + lead + 1) // 2
        self._room(self.bins)
        for name, array in paired:
            setattr(self, name, array)

    def arrays(self, *, whole: bool = False) -> dict[str, NDArray[Any]]:
        """What is kept, by name; with `whole` the room for bins to come, too."""
        end = None if whole else self.bins
        return {name: getattr(self, name)[..., :end] for name in _ARRAYS}

    def put(self, arrays: dict[str, NDArray[Any]], *, base: int, width: int) -> None:
        """Take over what was kept; raises ValueError where shapes or kinds do not fit together."""
        bins = arrays["first_t"].size
        for name in _ARRAYS:
            wanted = (bins,) if name.endswith("_t") else (self._fields, bins)
            if arrays[name].shape != wanted:
                raise ValueError(f"{name} has the shape {arrays[name].shape}, wanted is {wanted}")
            if arrays[name].dtype != getattr(self, name).dtype:
                raise ValueError(f"{name} holds {arrays[name].dtype}")
        if width < 1 or not 0 <= bins <= self._most:
            raise ValueError(f"{bins} bins of {width} steps")
        for name in _ARRAYS:
            setattr(self, name, arrays[name].copy())
        self.base, self.width, self.bins = base, width, bins

    def narrowed(self, first: int, last: int, most: int) -> Bins:
        """A copy of the bins that hold the steps from `first` to `last`, put together to `most` at most."""
        begin = max(0, (first - self.base) // self.width)
        end = min(self.bins, max(begin, (last - self.base) // self.width + 1))
        part = Bins(self._fields, max(2, most))
        arrays = {name: array[..., begin:end].copy() for name, array in self.arrays().items()}
        part._most = max(2, end - begin)
        part.put(arrays, base=self.base + begin * self.width, width=self.width)
        part._most = max(2, most)
        while part.bins > part._most:
            part._widen()
        return part


def _paired(arrays: dict[str, NDArray[Any]], lead: int) -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays with neighbouring bins put together; `lead` says that the first one stands alone."""
    padded = {name: _padded(name, array, lead) for name, array in arrays.items()}
    even, odd = ({name: it[..., side::2] for name, it in padded.items()} for side in (0, 1))
    second_is_larger = ~np.isnan(odd["high"]) & ~(even["high"] >= odd["high"])
    for name in _ARRAYS:
        if name in ("low", "first_t"):
            yield name, np.fmin(even[name], odd[name])
        elif name in ("high", "last_t"):
            yield name, np.fmax(even[name], odd[name])
        elif name == "worst":
            yield name, np.where(second_is_larger, odd[name], even[name])
        else:
            yield name, even[name] + odd[name]


def _padded(name: str, array: NDArray[Any], lead: int) -> NDArray[Any]:
    empty: float = -1 if name == "worst" else 0 if name in ("total", "count", "odd") else np.nan
    trail = (array.shape[-1] + lead) % 2
    pad = [(0, 0)] * (array.ndim - 1) + [(lead, trail)]
    return np.pad(array, pad, constant_values=empty)
