"""Each suspect is confirmed by its own figure, and no innocent is named."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from slow.tables import RANKS, STEPS, healthy, noise, told
from train_ledger.config import Alerts
from train_ledger.ledger.hardware.records import GpuState
from train_ledger.slow import Asked, Baseline, Beside, Cards, TableHistory, look
from train_ledger.slow.table import Layout
from train_ledger.slow.table.step_table import Marks

ONSET = 150
AFTER = np.arange(STEPS) >= ONSET


def answer(parts, beside=None, **of_table):
    return look(TableHistory(told(parts, **of_table)), Alerts(), beside)


def verdicts(found):
    return {it.cause: it.verdict for it in found.suspects}


def data(parts):
    parts["data_wait_s"] = parts["data_wait_s"] + 0.3 * AFTER


def logging(parts):
    parts["log_s"] = parts["log_s"] + 0.2 * AFTER
    parts["compute_s"] = parts["compute_s"] + 0.2 * AFTER
    parts["stdout_bytes"] = parts["stdout_bytes"] + np.cumsum(50_000.0 * AFTER)


def fragmentation(parts):
    parts["num_alloc_retries"] = parts["num_alloc_retries"] + np.cumsum(1.0 * AFTER)
    parts["mem_inactive_split"] = parts["mem_inactive_split"] + 2e9 * AFTER
    parts["compute_s"] = parts["compute_s"] + 0.2 * AFTER


def communication(parts):
    parts["transfer_s"] = parts["transfer_s"] + 0.4 * AFTER


def host_memory(parts):
    grown = np.clip(np.arange(STEPS) - ONSET, 0, None) / (STEPS - ONSET)
    parts["rss_bytes"] = parts["rss_bytes"] * (1 + 2 * grown)
    parts["compute_s"] = parts["compute_s"] * (1 + grown)


@pytest.mark.parametrize("fault", [data, logging, fragmentation, communication, host_memory])
def test_what_slows_all_is_told_by_its_figure_and_nobody_is_named(fault):
    parts = healthy()
    fault(parts)
    found = answer(parts)
    assert (found.cause, found.verdict, found.culprits) == (f"slow.{fault.__name__}", "slow", ())
    assert abs(found.since_step - ONSET) <= 25
    assert found.lost_s > 0


@pytest.mark.parametrize("fault", [data, logging, communication])
def test_of_the_others_each_is_ruled_out_with_a_figure(fault):
    parts = healthy()
    fault(parts)
    found = answer(parts)
    assert set(verdicts(found).values()) <= {"confirmed", "ruled_out", "not_observed"}
    ruled_out = [it for it in found.suspects if it.verdict == "ruled_out"]
    assert len(ruled_out) >= 4
    assert all(any(sign.isdigit() for sign in it.by) for it in ruled_out if "links" not in it.by)


def test_a_healthy_run_is_not_slow_and_no_suspect_is_confirmed():
    found = answer(healthy())
    assert (found.cause, found.verdict) == ("none", "not_slow")
    assert "confirmed" not in verdicts(found).values()


def test_one_slow_rank_is_named_with_its_victims():
    parts = healthy()
    parts["compute_s"][3] *= 1 + 0.5 * AFTER
    found = answer(parts)
    assert (found.cause, found.culprits, found.kind) == ("slow.straggler.software", (3,), "rank")
    assert found.victims == (0, 1, 2, 4, 5, 6, 7)
    assert verdicts(found)["slow.communication"] == "ruled_out"


def test_a_rank_whose_loader_is_slow_drags_by_its_host_code():
    parts = healthy()
    parts["data_wait_s"][5] += 0.4 * AFTER
    found = answer(parts)
    assert (found.cause, found.culprits, found.phase) == ("slow.straggler.software", (5,), "data")
    assert "loader" in found.remedy


def card(rank, mhz=1980.0, **more):
    return GpuState(
        f"node{rank * 2 // RANKS}", rank, f"GPU-{rank}", ranks=(rank,), seen_t=1.8e9,
        values={"DCGM_FI_DEV_SM_CLOCK": mhz, "DCGM_FI_DEV_GPU_TEMP": 60.0}, usual_mhz=1980.0, **more,
    )  # fmt: skip


def test_low_clocks_of_the_culprit_say_why():
    parts = healthy()
    parts["compute_s"][3] *= 1 + 0.4 * AFTER
    cards = Cards(tuple(card(rank, 1300.0 if rank == 3 else 1980.0) for rank in range(RANKS)))
    found = answer(parts, Beside(cards))
    assert (found.cause, found.culprits) == ("slow.straggler.clock", (3,))
    assert any("1300 MHz where 1980 is usual" in line for line in found.evidence)


def test_low_clocks_of_somebody_else_accuse_nobody_of_dragging():
    parts = healthy()
    parts["compute_s"][3] *= 1 + 0.4 * AFTER
    cards = Cards(tuple(card(rank, 1300.0 if rank == 6 else 1980.0) for rank in range(RANKS)))
    found = answer(parts, Beside(cards))
    assert (found.cause, found.culprits) == ("slow.straggler.software", (3,))
    assert verdicts(found)["slow.straggler.clock"] == "ruled_out"


def test_link_errors_of_the_culprit_say_why():
    parts = healthy()
    parts["compute_s"][3] *= 1 + 0.4 * AFTER
    errors = {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 812.0}
    cards = Cards(tuple(card(rank, links_grown=errors if rank == 3 else {}) for rank in range(RANKS)))
    assert answer(parts, Beside(cards)).cause == "slow.straggler.link"


def test_slow_transfers_and_errors_on_one_host_are_that_link_and_no_rank_is_a_culprit():
    parts = healthy()
    communication(parts)
    errors = {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": 90.0}
    cards = Cards(tuple(card(rank, links_grown=errors if rank == 2 else {}) for rank in range(RANKS)))
    found = answer(parts, Beside(cards))
    assert (found.cause, found.culprits) == ("slow.straggler.link", ())


def test_slow_ranks_that_take_turns_name_nobody():
    parts = healthy()
    slow = np.random.default_rng(1).integers(0, RANKS, STEPS)
    parts["compute_s"][slow, np.arange(STEPS)] *= 1 + 0.6 * AFTER
    assert answer(parts).culprits == ()


def test_of_two_ranks_nobody_is_named():
    parts = healthy(ranks=2)
    parts["compute_s"][1] *= 1.5
    found = answer(parts)
    assert found.culprits == ()
    assert any("two ranks" in line for line in (*found.evidence, *found.not_observed))


def test_without_own_work_nobody_is_named():
    table = told({**healthy(), "compute_s": healthy()["compute_s"] * (1 + 0.5 * AFTER)})
    left = {name: told for name, told in table.values.items() if name not in ("compute_s", "comm_wait_s")}
    found = look(TableHistory(dataclasses.replace(table, values=left)), Alerts())
    assert found.culprits == ()
    assert verdicts(found)["slow.communication"] == "not_observed"


def test_steps_that_hold_more_tokens_are_not_slow():
    parts = healthy()
    parts["tokens"] = np.where(AFTER, 8192.0, 4096.0) + np.zeros((RANKS, STEPS))
    for name in ("compute_s", "transfer_s"):
        parts[name] = parts[name] * (1 + 1.0 * AFTER)
    parts["transfer_s"] = parts["transfer_s"] / (1 + 1.0 * AFTER)
    assert answer(parts).cause == "none"


def test_steps_that_are_slower_by_work_of_all_ranks_are_slow_and_why_is_unknown():
    parts = healthy()
    parts["compute_s"] = parts["compute_s"] * (1 + 0.4 * AFTER)
    found = answer(parts)
    assert (found.cause, found.verdict, found.culprits) == ("unknown", "slow", ())


def test_another_run_is_what_it_is_compared_with():
    parts = healthy()
    parts["data_wait_s"] = parts["data_wait_s"] + 0.3
    asked = Asked(baseline=Baseline(told(healthy()), "steps 1-300 of r41"))
    found = look(TableHistory(told(parts)), Alerts(), asked=asked)
    assert (found.cause, found.slower, found.compared_with) == ("slow.data", True, "steps 1-300 of r41")


def test_a_step_to_cut_at_is_taken_as_it_is_given():
    parts = healthy()
    data(parts)
    found = look(TableHistory(told(parts)), Alerts(), asked=Asked(since_step=ONSET + 1))
    assert (found.cause, found.since_step) == ("slow.data", ONSET + 1)
    assert found.before_s == pytest.approx(0.96, abs=0.03)


def test_of_a_few_steps_nothing_is_said():
    parts = {name: values[..., :6] for name, values in healthy().items()}
    found = answer(parts)
    assert (found.verdict, found.cause) == ("cannot_tell", "unknown")


def test_one_step_that_took_very_long_moves_nothing():
    parts = healthy()
    parts["compute_s"][2, 200] = 30.0
    found = answer(parts)
    assert (found.cause, found.culprits) == ("none", ())


def test_most_of_what_is_lost_is_what_the_steps_took_longer():
    parts = healthy()
    data(parts)
    found = answer(parts)
    assert found.lost_s == pytest.approx(0.3 * (STEPS - ONSET), rel=0.1)


def test_noise_alone_is_not_slower():
    parts = healthy(seed=7)
    parts["compute_s"] = parts["compute_s"] * (1 + np.abs(noise(9, (RANKS, STEPS), 0.03)))
    assert not answer(parts).slower


def test_a_whole_stage_with_more_layers_is_the_layout_and_nobody():
    parts = healthy()
    table = told(parts)
    layout = Layout(RANKS, {"dp": 4, "tp": 1, "pp": 2}, {})
    places = layout.places(range(RANKS))
    slow = np.array([place.stage == 1 for place in places])
    parts["compute_s"][slow] *= 1.4
    table = dataclasses.replace(told(parts), places=places)
    found = look(TableHistory(table), Alerts())
    assert (found.cause, found.culprits, found.slower) == ("slow.stage_imbalance", (), False)


def test_steps_of_an_evaluation_are_no_slow_ones():
    parts = healthy()
    evaluates = np.arange(STEPS) % 50 == 49
    parts["transfer_s"] = parts["transfer_s"] + 5.0 * evaluates
    table = told(parts)
    nothing = np.zeros(STEPS, dtype=bool)
    marks = Marks(nothing, evaluates, nothing, nothing, nothing)
    found = look(TableHistory(dataclasses.replace(table, marks=marks)), Alerts())
    assert (found.cause, found.slower) == ("none", False)


def test_slower_from_a_restart_on_is_held_against_the_attempt_before():
    before = told(healthy(seed=3))
    parts = healthy(seed=4)
    parts["data_wait_s"] = parts["data_wait_s"] + 0.3
    table = told(parts)
    restart = np.arange(STEPS) == 0
    nothing = np.zeros(STEPS, dtype=bool)
    marks = Marks(nothing, nothing, restart, np.arange(STEPS) < 3, nothing)
    steps = table.steps + STEPS
    table = dataclasses.replace(table, attempt=1, steps=steps, marks=marks, earlier=before)
    found = look(TableHistory(table), Alerts())
    assert (found.cause, found.culprits) == ("slow.data", ())
    assert found.compared_with.startswith("the attempt before")


def test_ranks_that_lack_compute_s_do_not_make_others_culprits():
    parts = healthy()
    parts["compute_s"][3] *= 1 + 0.5 * AFTER
    table = told(parts)
    values = dict(table.values)
    for name in ("compute_s", "comm_wait_s"):
        values[name] = values[name].copy()
        values[name][[0, 1, 2, 6, 7]] = np.nan
    found = look(TableHistory(dataclasses.replace(table, values=values)), Alerts())
    assert found.culprits in ((), (3,))


@pytest.mark.parametrize("fault", [fragmentation, host_memory])
def test_memory_that_grew_is_not_why_the_network_became_slower(fault):
    parts = healthy()
    fault(parts)
    parts["compute_s"] = healthy()["compute_s"]
    communication(parts)
    found = answer(parts)
    assert (found.cause, found.confidence) == ("slow.communication", "high")
    assert verdicts(found)[f"slow.{fault.__name__}"] == "ruled_out"


def test_the_memory_that_grew_on_the_rank_that_drags_is_told_as_its():
    """A leak on one rank; memory that grew on another one says nothing of who drags."""
    leak = {}
    for leaks in (3, 5):
        parts = healthy()
        parts["rss_bytes"][leaks] += 40e9 * np.clip(np.arange(STEPS) - ONSET, 0, None) / (STEPS - ONSET)
        parts["compute_s"][3] *= 1 + 0.5 * AFTER
        found = answer(parts)
        assert (found.cause, found.culprits) == ("slow.straggler.software", (3,))
        (leak[leaks],) = (it for it in found.suspects if it.cause == "slow.host_memory")
    assert (leak[3].verdict, leak[3].ranks) == ("confirmed", (3,))
    assert leak[5].verdict == "ruled_out"


def test_of_two_ranks_that_drag_the_one_whose_memory_grew_alone_is_told_so():
    parts = healthy()
    parts["rss_bytes"][3] += 40e9 * np.clip(np.arange(STEPS) - ONSET, 0, None) / (STEPS - ONSET)
    parts["compute_s"][3:5] *= 1 + 0.5 * AFTER
    found = answer(parts)
    assert found.culprits == (3, 4)
    (leak,) = (it for it in found.suspects if it.cause == "slow.host_memory")
    assert (leak.verdict, leak.ranks) == ("confirmed", (3,))


def test_a_baseline_that_does_not_tell_everything_is_compared_by_what_it_tells():
    parts = healthy()
    parts["data_wait_s"] = parts["data_wait_s"] + 0.3
    other = told(healthy(ranks=4))
    left = {name: other.of(name) for name in ("step_time_s", "compute_s", "data_wait_s", "comm_wait_s")}
    asked = Asked(baseline=Baseline(dataclasses.replace(other, values=left), "steps 1-300 of r41"))
    found = look(TableHistory(told(parts)), Alerts(), asked=asked)
    assert (found.cause, verdicts(found)["slow.host_memory"]) == ("slow.data", "not_observed")


def test_a_rank_whose_cores_are_taken_by_others_is_told():
    parts = healthy()
    parts["compute_s"][3] *= 1 + 0.4 * AFTER
    parts["cpu_percent"][3] += 250.0 * AFTER
    (line,) = (line for line in answer(parts).evidence if "cpu_percent" in line)
    assert "cpu_percent 350 (others 100): its cores may be contended, as by loader workers" in line


def test_each_thing_is_said_once():
    parts = healthy()
    parts["compute_s"][3] *= 1 + 0.4 * AFTER
    told_once = answer(parts).evidence
    assert len(set(told_once)) == len(told_once) == 4
    assert "few ranks or all: few, 1 of 8" in told_once


def test_a_mean_that_rose_by_single_steps_is_not_said_to_be_no_longer():
    parts = healthy()
    parts["compute_s"] = parts["compute_s"] + 3.0 * ((np.arange(STEPS) % 25 == 0) & AFTER)
    (line,) = (line for line in answer(parts).evidence if line.startswith("a step takes"))
    assert "no longer" not in line
