"""Bins keep the least, the largest and the sum of all that was put into them, however wide they became."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.ledger.history.bins import Bins

Told = list[tuple[int, int, float]]

TOLD = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 400), st.one_of(st.just(float("nan")), st.floats(-1e6, 1e6))),
    max_size=60,
)


def filled(told: Told, most: int) -> Bins:
    bins = Bins(1, most)
    for rank, step, value in told:
        bins.add(rank, np.array([step]), np.array([1000.0 + step]), np.array([[value]]))
    return bins


def assert_holds(bins: Bins, told: Told) -> None:
    """Each bin has what a look through all that was told gives."""
    assert bins.base % bins.width == 0
    for place in range(bins.bins):
        begin = bins.base + place * bins.width
        here = [(rank, value) for rank, step, value in told if begin <= step < begin + bins.width]
        values = [value for _, value in here if value == value]
        assert bins.count[0, place] == len(values)
        assert bins.total[0, place] == pytest.approx(sum(values), abs=1e-3)
        if values:
            assert bins.low[0, place] == min(values)
            assert bins.high[0, place] == max(values)
            assert bins.worst[0, place] in {rank for rank, value in here if value == max(values)}
        else:
            assert np.isnan(bins.high[0, place])
            assert bins.worst[0, place] == -1
    assert sum(bins.count[0, : bins.bins]) == sum(value == value for _, _, value in told)


@given(TOLD, st.sampled_from([4, 16, 1024]))
def test_nothing_is_left_out_and_nothing_made_up(told: Told, most: int) -> None:
    bins = filled(told, most)
    assert bins.bins <= most
    assert_holds(bins, told)


@given(TOLD, st.integers(0, 400), st.integers(0, 400), st.integers(2, 12))
def test_a_window_of_it_holds_the_same(told: Told, first: int, length: int, most: int) -> None:
    whole = filled(told, 1024)
    part = whole.narrowed(first, first + length, most)
    assert part.bins <= most
    within = [each for each in told if whole.bins and first <= each[1] <= first + length]
    assert_holds(part, within)


@given(TOLD)
def test_steps_in_a_row_are_as_good_as_one_by_one(told: Told) -> None:
    bins = Bins(1, 16)
    for rank in range(4):
        own = {step: value for of, step, value in told if of == rank}
        steps = np.array(sorted(own), np.int64)
        bins.add(rank, steps, 1000.0 + steps, np.array([[own[step] for step in sorted(own)]], float))
    last = [(rank, step, {s: v for r, s, v in told if r == rank}[step]) for rank, step, _ in told]
    assert_holds(bins, list({each[:2]: each for each in last}.values()))


def test_what_is_no_finite_number_is_counted() -> None:
    bins = Bins(1)
    steps = np.array([1, 2])
    bins.add(0, steps, steps * 1.0, np.array([[np.nan, 2.0]]), np.array([[True, False]]))
    assert bins.odd[0, : bins.bins].tolist() == [1, 0]
    assert bins.count[0, : bins.bins].tolist() == [0, 1]


def test_a_bin_knows_when_it_was() -> None:
    bins = Bins(1, 2)
    steps = np.arange(4)
    bins.add(0, steps, np.array([10.0, 11.0, 12.0, 15.0]), np.zeros((1, 4)))
    assert bins.width == 2
    assert (bins.first_t[:2].tolist(), bins.last_t[:2].tolist()) == ([10.0, 12.0], [11.0, 15.0])


@pytest.mark.parametrize("wrong", ["low", "first_t"])
def test_shapes_that_do_not_fit_are_refused(wrong: str) -> None:
    kept = filled([(0, 1, 1.0), (0, 2, 1.0)], 8).arrays()
    kept[wrong] = kept[wrong][..., :1]
    with pytest.raises(ValueError, match="shape"):
        Bins(1).put(kept, base=0, width=1)
