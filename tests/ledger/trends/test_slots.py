"""Times are laid into slots; the lowest ranks keep their seats."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.ledger.trends.slots import can_seat, pieces, seat

_TIMES = st.lists(st.floats(-1e6, 1e9), min_size=1).map(sorted)


@given(times=_TIMES, slot_s=st.integers(1, 4000))
def test_each_time_lies_in_its_slot(times: list[float], slot_s: int) -> None:
    slots = [slot for slot, start, end in pieces(times, slot_s) for _ in range(start, end)]
    assert slots == [int(t // slot_s) for t in times]


@given(times=_TIMES, slot_s=st.integers(1, 4000), newest=st.integers(1, 9))
def test_the_newest_slots_are_the_last_of_them_all(times: list[float], slot_s: int, newest: int) -> None:
    last = int(times[-1] // slot_s)
    assert list(pieces(times, slot_s, newest)) == [
        piece for piece in pieces(times, slot_s) if piece[0] > last - newest
    ]


@given(ranks=st.lists(st.integers(0, 20), min_size=1), most=st.integers(1, 4))
def test_the_lowest_ranks_have_theirs_from_their_first_step_on(ranks: list[int], most: int) -> None:
    seats: dict[int, list[int]] = {}
    for place, rank in enumerate(ranks):
        could = can_seat(seats, rank, most)
        trend = seat(seats, rank, most, list)
        assert (trend is not None) == could
        if trend is not None:
            trend.append(place)
    lowest = sorted(set(ranks))[:most]
    assert seats == {rank: [place for place, it in enumerate(ranks) if it == rank] for rank in lowest}
