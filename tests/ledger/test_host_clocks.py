"""How far hosts are apart, whichever of their steps is read first, and with bounded memory."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.ledger import host_clocks
from train_ledger.ledger.clock import Lap
from train_ledger.ledger.host_clocks import HostClocks

FIRST = (0, 0)


def complete(clocks: HostClocks, rank: int, steps: range, ahead_s: float = 0.0, lap: Lap = FIRST) -> None:
    clocks.completed(rank, lap, list(steps), [100.0 + step + ahead_s for step in steps])


def test_the_lead_is_the_median_over_the_last_five_shared_steps() -> None:
    clocks = HostClocks()
    complete(clocks, 0, range(1, 10))
    clocks.completed(3, FIRST, [5, 6, 7, 8, 9, 10], [100 + step + 7.0 * (step > 6) for step in range(5, 11)])
    assert clocks.lead_s(3) == 7.0
    assert clocks.lead_s(0) == 0.0
    assert clocks.lead_s(4) is None


def test_a_rank_that_logs_more_seldom_shares_the_steps_that_it_has() -> None:
    clocks = HostClocks()
    complete(clocks, 1, range(0, 100, 10), ahead_s=3.0)
    complete(clocks, 0, range(0, 95))
    assert clocks.leads_s({0: "a", 1: "b"}) == {0: 0.0, 1: 3.0}


def test_who_asks_after_each_line_has_one_rank_compared_not_all_that_wait() -> None:
    compared: list[int] = []

    class Counting(HostClocks):
        def _take_leads(self, rank: int, *about: Any) -> None:
            compared.append(rank)
            super()._take_leads(rank, *about)

    clocks, ranks = Counting(), range(100)
    complete(clocks, 0, range(1, 2))
    for step in range(2, 12):
        for rank in reversed(ranks):
            complete(clocks, rank, range(step, step + 1), ahead_s=rank)
            clocks.lead_s(rank)
    assert len(compared) == 10 * 99
    assert clocks.leads_s(dict.fromkeys(ranks))[7] == 7.0


def test_equal_steps_of_different_laps_are_not_shared() -> None:
    clocks = HostClocks()
    complete(clocks, 0, range(1, 10))
    complete(clocks, 0, range(5, 8), lap=(0, 1))
    complete(clocks, 1, range(5, 10), ahead_s=9.0, lap=(1, 0))
    assert clocks.lead_s(1) is None
    complete(clocks, 0, range(5, 6), lap=(1, 0))
    assert clocks.lead_s(1) == 9.0


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.integers(1, 9), st.booleans()), max_size=40))
def test_in_which_order_they_are_read_does_not_matter(reads: list[tuple[int, int, bool]]) -> None:
    """Each read takes the next steps of a rank; sometimes somebody looks in between."""
    interleaved, apart, reached = HostClocks(), HostClocks(), dict.fromkeys(range(3), 1)
    for rank, count, is_looked_at in reads:
        complete(interleaved, rank, range(reached[rank], reached[rank] + count), ahead_s=rank * 5.0)
        reached[rank] += count
        if is_looked_at:
            interleaved.leads_s({0: None, 1: None, 2: None})
    for rank in (2, 0, 1):
        if reached[rank] > 1:
            complete(apart, rank, range(1, reached[rank]), ahead_s=rank * 5.0)
    assert [interleaved.lead_s(rank) for rank in (1, 2)] == [apart.lead_s(rank) for rank in (1, 2)]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_clocks, "_ZERO_STEPS", 10)
    monkeypatch.setattr(host_clocks, "_WAITING_STEPS", 40)
    clocks = HostClocks()
    for start in range(1, 2000, 7):  # rank 0 is on another node, and nobody here reads it
        complete(clocks, 1, range(start, start + 7), ahead_s=4.0)
        complete(clocks, 2, range(start, start + 7), ahead_s=-4.0)
        kept = sum(len(steps) for laps in clocks._waiting.values() for steps, _ in laps.values())
        assert kept == clocks._waiting_steps <= 40
    for step in range(1, 2002):
        complete(clocks, 0, range(step, step + 1))
        assert sum(map(len, clocks._zero.values())) == clocks._zero_steps <= 20
    assert (clocks.lead_s(1), clocks.lead_s(2)) == (4.0, -4.0)


def test_laps_of_rank_0_are_forgotten_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_clocks, "_ZERO_STEPS", 10)
    clocks = HostClocks()
    for lap in range(9):
        complete(clocks, 0, range(1, 5), lap=(0, lap))
    assert max(clocks._zero) == (0, 8)
    assert min(clocks._zero) > (0, 3)
    complete(clocks, 1, range(1, 5), ahead_s=2.0, lap=(0, 8))
    assert clocks.lead_s(1) == median([2.0] * 4)
