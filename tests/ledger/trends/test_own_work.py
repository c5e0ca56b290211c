"""Who is an outlier does not depend on how the steps are gone through."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.config import Alerts
from train_ledger.ledger.trends import own_work
from train_ledger.ledger.trends.figures import Outlier
from train_ledger.ledger.trends.own_work import OwnWork, outliers

ALERTS = Alerts(outlier_least_steps=10)


def named(told: list[list[float]], world_size: int | None = None) -> tuple[Outlier, ...]:
    members = []
    for rank, values in enumerate(told):
        work = OwnWork(ALERTS)
        for step, value in enumerate(values):
            work.add(step, {"compute_s": value})
        members.append((rank, f"n{rank // 2}", work))
    return outliers(members, world_size, lambda rank: 0, 10.0, ALERTS)


_RANK = st.lists(st.sampled_from([8.0, 8.05, 9.0, 12.0]), min_size=10, max_size=12)


@given(told=st.lists(_RANK | st.just([8.0] * 10) | st.just([9.5] * 10), min_size=3, max_size=8))
def test_a_look_at_few_steps_first_misses_nobody(told: list[list[float]]) -> None:
    quick = named(told)
    with patch.object(own_work, "_READ_AHEAD", 1000):
        assert named(told) == quick


def test_the_worst_of_a_host_alone_is_named() -> None:
    told = [[8.0] * 10 for _ in range(8)]
    told[4], told[5] = [10.0] * 10, [11.0] * 10
    (found,) = named(told)
    assert (found.rank, found.host, found.share) == (5, "n2", 1.0)
    assert found.ratio == 11 / 8
    assert found.impact == 0.3


def test_who_sees_one_host_of_many_names_nobody() -> None:
    told = [[8.0] * 10 for _ in range(8)]
    told[4] = [10.0] * 10
    assert [it.rank for it in named(told, world_size=8)] == [4]
    assert [it.rank for it in named(told, world_size=15)] == [4]
    assert named(told, world_size=16) == ()


def test_a_rank_that_told_too_few_steps_is_none() -> None:
    told = [[8.0] * 10 for _ in range(8)]
    told[3] = [12.0] * 9
    assert named(told) == ()
