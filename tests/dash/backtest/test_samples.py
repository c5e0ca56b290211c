"""Scraped samples as promtool reads them."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.dash.backtest.samples import Samples


def written(*values: float | None) -> str:
    """One series of a target that answers every scrape, None where it tells nothing of it."""
    samples = Samples()
    for scrape, value in enumerate(values):
        samples.scraped(scrape, "node", {} if value is None else {"x": value})
    return dict(samples.lines()).get("x", "")


def read(words: str) -> list[float | None]:
    """As promtool: `a+bxn` is n more values after a, each made by adding b to the one before."""
    values: list[float | None] = []
    for word in words.split():
        number, _, times = word.partition("x")
        if number == "stale":
            values.append(None)
        elif number == "_":
            values += [None] * int(times or 1)
        elif times:
            sign = max(number.rfind("+"), number.rfind("-"))
            value, step = float(number[:sign]), float(number[sign:])
            for _ in range(int(times) + 1):
                values.append(value)
                value += step
        else:
            values.append(float(number))
    return values


def test_what_rises_evenly_is_one_word() -> None:
    assert written(5, 6, 7, 8) == "5+1x3"
    assert written(8, 6, 4) == "8-2x2"
    assert written(3, 3, 3, 3) == "3+0x3"


def test_what_does_not_is_a_word_each() -> None:
    assert written(1.5, 9, 2) == "1.5 9 2"


def test_where_the_answer_has_it_no_more_it_is_stale_and_then_not_there() -> None:
    assert written(None, None, 4, None, None, 7) == "_x2 4 stale _ 7"


def test_numbers_that_are_none_are_told() -> None:
    assert written(math.nan, math.inf, -math.inf, 1) == "NaN Inf -Inf 1"


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5), st.floats(-1e6, 1e6, width=32))))
def test_promtool_makes_the_very_values_of_it_again(values: list[float | None]) -> None:
    told = read(written(*values))
    assert told == [float(it) if it is not None else None for it in values][: len(told)]
    assert all(it is None for it in values[len(told) :])
