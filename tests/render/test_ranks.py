"""Many ranks in few words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.render import rank_ranges, ranks_in_words


def test_runs_are_drawn_together() -> None:
    assert rank_ranges([0, 1, 2, 4, 5, 6, 7]) == "0-2,4-7"
    assert rank_ranges([7, 3]) == "3,7"
    assert ranks_in_words(range(16384)) == "ranks 0-16383"


@given(st.sets(st.integers(0, 60)))
def test_nobody_is_lost_and_nobody_added(ranks: set[int]) -> None:
    named = set()
    for run in filter(None, rank_ranges(ranks).split(",")):
        first, _, last = run.partition("-")
        named |= set(range(int(first), int(last or first) + 1))
    assert named == ranks
