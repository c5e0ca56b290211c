"""Many ranks in few words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.render import rank_ranges, ranks_in_brief, ranks_in_words


def test_runs_are_drawn_together() -> None:
    assert rank_ranges([0, 1, 2, 4, 5, 6, 7]) == "0-2,4-7"
    assert rank_ranges([7, 3]) == "3,7"
    assert ranks_in_words(range(16384)) == "ranks 0-16383"


def test_a_stride_of_a_thousand_is_said_and_a_few_are_listed() -> None:
    assert ranks_in_words(range(4, 1024, 8)) == "ranks 4-1020 every 8th"
    assert ranks_in_words([0, 8, 16, 24]) == "ranks 0,8,16,24"
    assert ranks_in_words([0, 1, *range(10, 90, 11), 200]) == "ranks 0-1,10-87 every 11th,200"


def test_of_many_those_are_named_that_do_not_belong_to_them() -> None:
    assert ranks_in_words(set(range(8, 1024)) - set(range(13, 1024, 8))) == (
        "ranks 8-1023 without 13-1021 every 8th"
    )
    assert ranks_in_words(set(range(1024)) - {5}) == "ranks 0-4,6-1023"


def test_no_part_of_a_mesh_is_cut_on_a_narrow_screen() -> None:
    for width in (2, 4, 8, 16, 32, 64):
        for first in range(width):
            some = set(range(first, 1024, width))
            assert "…" not in ranks_in_brief(some, longest=60)
            assert "…" not in ranks_in_brief(set(range(1024)) - some, longest=60)


def test_what_is_too_long_even_so_is_counted_and_begun() -> None:
    most = set(range(8, 1024)) - set(range(13, 1024, 8))
    assert ranks_in_brief(most, longest=26) == "889 ranks 8-12,14-20,…"


@given(st.sets(st.integers(0, 60)))
def test_nobody_is_lost_and_nobody_added(ranks: set[int]) -> None:
    assert _listed(rank_ranges(ranks)) == ranks


def _mesh(first: int, apart: int, count: int) -> set[int]:
    return set(range(first, first + apart * count, apart))


_STRIDES = st.builds(_mesh, st.integers(0, 200), st.integers(1, 70), st.integers(1, 40))


@given(st.lists(_STRIDES, min_size=1, max_size=4), st.sets(st.integers(0, 300), max_size=5), st.booleans())
def test_words_can_be_read_back(strides: list[set[int]], extra: set[int], turned: bool) -> None:
    ranks = extra.union(*strides)
    ranks = set(range(max(ranks) + 2)) - ranks if turned else ranks
    words = ranks_in_words(ranks).partition(" ")[2]
    told, _, without = words.partition(" without ")
    assert (_listed(told) - _listed(without) if ranks else words == "rank" and set()) == ranks
    assert len(words) <= max(len("rank"), len(rank_ranges(ranks)))


def _listed(told: str) -> set[int]:
    """The ranks that are meant, read as a person would."""
    named = set()
    for part in filter(None, told.split(",")):
        run, _, apart = part.partition(" every ")
        first, _, last = run.partition("-")
        named |= set(range(int(first), int(last or first) + 1, int(apart.rstrip("dhnrst") or 1)))
    return named
