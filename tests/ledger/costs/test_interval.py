"""The interval between checkpoints: published figures, and laws that hold for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.ledger.costs import daly_s, ettr, mttf_s, waste, young_s

LLAMA_3_MTBI_MIN = 185.6


@pytest.mark.parametrize(("save_min", "young_min", "daly_min"), [(1, 19.27, 18.60), (5, 43.08, 39.81)])
def test_the_interval_of_llama_3(save_min: float, young_min: float, daly_min: float) -> None:
    assert young_s(save_min * 60, LLAMA_3_MTBI_MIN * 60) / 60 == pytest.approx(young_min, abs=0.005)
    assert daly_s(save_min * 60, LLAMA_3_MTBI_MIN * 60) / 60 == pytest.approx(daly_min, abs=0.006)


def test_sixteen_minutes_by_young_where_a_save_costs_45_seconds() -> None:
    assert young_s(45, 3 * 3600) == pytest.approx(16 * 60, abs=30)


def test_two_thousand_nodes_fail_every_1_8_hours() -> None:
    assert mttf_s(2048, 6.50e-3) / 3600 == pytest.approx(1.803, abs=0.001)


def test_metas_effective_training_time_at_an_hour_between_saves() -> None:
    assert ettr(mttf_s(2048, 6.50e-3), 5 * 60, 3600) == pytest.approx(0.676, abs=0.0005)


def test_a_save_that_costs_more_than_twice_m_is_made_once_in_m() -> None:
    assert daly_s(201, 100) == 100


def test_a_run_that_fails_faster_than_it_comes_back_has_no_useful_time() -> None:
    assert ettr(100, 200, 60) == 0
    assert waste(60, 1, 100, 200) > 1


_deltas = st.floats(0.1, 600)
_mtbis = st.floats(3600, 1e6)


@given(_deltas, _mtbis, st.floats(0.1, 10))
def test_no_other_interval_costs_much_less_than_youngs(delta_s: float, mtbi_s: float, factor: float) -> None:
    best_s = young_s(delta_s, mtbi_s)
    assert waste(best_s, delta_s, mtbi_s) <= waste(best_s * factor, delta_s, mtbi_s) * 1.25


@given(_deltas, _mtbis)
def test_youngs_and_dalys_interval_lie_close_together(delta_s: float, mtbi_s: float) -> None:
    assert abs(daly_s(delta_s, mtbi_s) - young_s(delta_s, mtbi_s)) <= delta_s
