"""How do scraped samples read as the input series of promtool?

Each series is one word a stretch: `5+1x3` for 5, 6, 7, 8, `_x4` for four scrapes without it, and `stale`
where an answer came that had it no more, as Prometheus marks it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

__all__ = ["Samples"]


class _Series:
    """The words of one series; `next_scrape` is the number of the scrape that is to be written next."""

    __slots__ = ("_count", "_first", "_last", "_step", "_words", "next_scrape")

    def __init__(self) -> None:
        self._words: list[str] = []
        self._first = self._last = self._step = 0.0
        self._count = 0
        self.next_scrape = 0

    def add(self, scrape: int, value: float) -> None:
        self._leave_out(scrape)
        self.next_scrape = scrape + 1
        if self._count == 1:
            self._step = value - self._last
        # promtool adds up, so that what it makes of a step must be the very value
        if self._count and self._last + self._step == value:
            self._last, self._count = value, self._count + 1
            return
        self._flush()
        self._first = self._last = value
        self._count = 1

    def vanish(self, scrape: int) -> None:
        self._leave_out(scrape)
        self._flush()
        self._words.append("stale")
        self.next_scrape = scrape + 1

    def _leave_out(self, scrape: int) -> None:
        missing = scrape - self.next_scrape
        if missing:
            self._flush()
            self._words.append("_" if missing == 1 else f"_x{missing}")
            self.next_scrape = scrape

    def _flush(self) -> None:
        if self._count == 1:
            self._words.append(_number(self._first))
        elif self._count == 2 and self._step:
            self._words += [_number(self._first), _number(self._last)]
        elif self._count:
            sign = "-" if self._step < 0 else "+"
            self._words.append(f"{_number(self._first)}{sign}{_number(abs(self._step))}x{self._count - 1}")
        self._count = 0

    @property
    def text(self) -> str:
        self._flush()
        return " ".join(self._words)


class Samples:
    """The samples of all series of all targets, scrape by scrape."""

    def __init__(self) -> None:
        self._series: dict[str, _Series] = {}
        self._there: dict[str, Mapping[str, float]] = {}

    def __len__(self) -> int:
        return len(self._series)

    def scraped(self, scrape: int, target: str, samples: Mapping[str, float]) -> None:
        """The answer of a target to the scrape of this number; scrapes of one target rise."""
        for name in self._there.get(target, {}).keys() - samples.keys():
            self._series[name].vanish(scrape)
        self._there[target] = samples
        for name, value in samples.items():
            series = self._series.get(name)
            if series is None:
                series = self._series[name] = _Series()
            series.add(scrape, value)

    def lines(self) -> Iterator[tuple[str, str]]:
        """(series, values) as promtool reads them."""
        for name, series in self._series.items():
            yield name, series.text


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
