"""Sets of time obey the laws of sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.slow.trace.intervals import Intervals, both, clipped, length_ns, union, without

some = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


def set_of(pairs: list[tuple[int, int]]) -> Intervals:
    return union([start for start, _ in pairs], [end for _, end in pairs])


def moments(intervals: Intervals) -> set[int]:
    return {moment for start, end in intervals.tolist() for moment in range(start, end)}


@given(some)
def test_a_union_holds_every_moment_once(pairs: list[tuple[int, int]]) -> None:
    found = set_of(pairs)
    assert moments(found) == {moment for start, end in pairs for moment in range(start, end)}
    assert length_ns(found) == len(moments(found))
    assert bool(np.all(found[1:, 0] > found[:-1, 1])), "sorted, and none touches the next"


@given(some, some, st.integers(0, 40), st.integers(0, 40))
def test_the_others_are_what_sets_of_moments_say(
    one: list[tuple[int, int]], other: list[tuple[int, int]], start: int, end: int
) -> None:
    first, second = set_of(one), set_of(other)
    assert moments(both(first, second)) == moments(first) & moments(second)
    assert moments(without(first, second)) == moments(first) - moments(second)
    assert moments(clipped(first, start, end)) == moments(first) & set(range(start, end))


def test_nanoseconds_since_1970_are_not_rounded() -> None:
    t = 1_712_195_495_505_543_197
    assert union([t], [t + 1]).tolist() == [[t, t + 1]]
