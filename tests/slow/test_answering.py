"""Who drags is asked of the steps since the change, by who worked how long before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slow.tables import RANKS, STEPS, healthy, noise, told
from train_ledger.config import Alerts
from train_ledger.ledger.hardware.records import GpuState
from train_ledger.slow import Beside, Cards, TableHistory, look
from train_ledger.slow.table import Layout

ONSET = 150
AFTER = np.arange(STEPS) >= ONSET
ALL = np.ones(STEPS)


def pipeline(parts, pp=4, per_host=4):
    """A job of `pp` stages, data parallel within, whose hosts are parts of stages."""
    ranks = len(parts["compute_s"])
    identities = {rank: {"host": f"node{rank // per_host}", "gpu": rank} for rank in range(ranks)}
    layout = Layout(ranks, {"dp": ranks // pp, "pp": pp}, identities)
    return replace(told(parts), places=layout.places(range(ranks)), world_size=ranks)


def answer(table, beside=None):
    return look(TableHistory(table), Alerts(), beside)


def verdicts(found):
    return {it.cause: it.verdict for it in found.suspects}


@pytest.mark.parametrize("since", [AFTER, ALL], ids=["became slow", "from the beginning"])
def test_a_host_that_is_half_of_a_stage_is_named(since):
    parts = healthy(ranks=32)
    parts["compute_s"][8:12] *= 1 + 0.3 * since
    found = answer(pipeline(parts))
    assert (found.kind, found.culprits, found.hosts) == ("host", (8, 9, 10, 11), ("node2",))


def test_half_of_every_stage_with_the_longer_sequences_is_no_hosts_fault():
    parts = healthy(ranks=32)
    parts["compute_s"][np.arange(32) % 8 < 4] *= 1.3
    assert answer(pipeline(parts)).culprits == ()


def test_a_host_that_is_a_stage_and_became_slow_long_ago_is_named():
    parts = healthy(ranks=16)
    parts["compute_s"][4:8] *= 1 + 0.3 * AFTER
    found = answer(pipeline(parts))
    assert (found.kind, found.hosts) == ("host", ("node1",))


def test_a_host_of_two_stages_is_named_where_both_became_slow():
    parts = healthy(ranks=32)
    parts["compute_s"][8:16] *= 1 + 0.3 * AFTER
    found = answer(pipeline(parts, pp=8, per_host=8))
    assert (found.kind, found.hosts, found.culprits) == ("host", ("node1",), tuple(range(8, 16)))


def test_a_host_of_two_stages_is_not_named_where_one_of_them_became_slow():
    parts = healthy(ranks=32)
    parts["compute_s"][8:12] *= 1 + 0.3 * AFTER
    found = answer(pipeline(parts, pp=8, per_host=8))
    assert (found.kind, found.culprits) == ("stage", ())


def card(rank, mhz):
    return GpuState(
        f"node{rank * 2 // RANKS}", rank, f"GPU-{rank}", ranks=(rank,), seen_t=1.8e9,
        values={"DCGM_FI_DEV_SM_CLOCK": mhz}, usual_mhz=1980.0,
    )  # fmt: skip


def test_one_of_two_hosts_slow_from_the_start_is_named_where_its_cards_are():
    parts = healthy()
    parts["compute_s"][4:] *= 1.3
    assert answer(told(parts)).culprits == ()
    cards = Cards(tuple(card(rank, 1400.0 if rank >= 4 else 1980.0) for rank in range(RANKS)))
    found = answer(told(parts), Beside(cards))
    assert (found.cause, found.culprits) == ("slow.straggler.clock", (4, 5, 6, 7))


def test_low_clocks_on_both_hosts_leave_open_which_one_it_is():
    parts = healthy()
    parts["compute_s"][4:] *= 1.3
    cards = Cards(tuple(card(rank, 1400.0) for rank in range(RANKS)))
    assert answer(told(parts), Beside(cards)).culprits == ()


def test_who_dragged_a_little_all_the_time_is_not_why_steps_became_slower():
    parts = healthy()
    parts["compute_s"][3] *= 1.15
    parts["data_wait_s"] = parts["data_wait_s"] + 0.5 * AFTER
    found = answer(told(parts))
    assert (found.cause, found.culprits) == ("slow.data", ())
    assert any("rank 3" in line and "as before steps became slower" in line for line in found.evidence)


def test_a_stage_out_of_balance_all_the_time_is_not_why_steps_became_slower():
    parts = healthy(ranks=16)
    parts["compute_s"][4:8] *= 1.2
    parts["compute_s"] = parts["compute_s"] * (1 + 0.5 * AFTER)
    found = answer(pipeline(parts, per_host=8))
    assert (found.cause, verdicts(found)["slow.stage_imbalance"]) == ("unknown", "ruled_out")


@pytest.mark.parametrize(
    ("work", "network", "cause"), [(0.3, 0.0, "unknown"), (0.0, 0.3, "slow.communication")]
)
def test_the_bubble_of_a_pipeline_that_grows_with_the_work_is_no_slower_network(work, network, cause):
    parts = healthy(ranks=16)
    parts["compute_s"] = parts["compute_s"] * (1 + work * AFTER)
    parts["transfer_s"] = parts["transfer_s"] + 0.6 * parts["compute_s"].max(axis=0) + network * AFTER
    found = answer(pipeline(parts))
    assert (found.slower, found.cause, found.culprits) == (True, cause, ())


def test_slower_saves_are_told_where_a_stage_is_out_of_balance_all_the_time():
    parts = healthy(ranks=16)
    parts["compute_s"][4:8] *= 1.2
    saves = np.arange(STEPS) % 20 == 19
    parts["ckpt_s"] = np.where(saves, 1.0 + 5 * AFTER, 0.0) + np.zeros((16, 1))
    table = pipeline(parts, per_host=8)
    table = replace(table, marks=replace(table.marks, checkpoint=saves))
    assert answer(table).cause == "slow.checkpoint"


def test_a_rank_that_tells_nothing_may_be_the_one_that_all_wait_for():
    parts = healthy()
    parts["compute_s"][5] *= 1 + 0.5 * AFTER
    table = told(parts)
    found = answer(table.rows([rank for rank in range(RANKS) if rank != 5]))
    assert (found.cause, found.kind, found.culprits) == ("unknown", "cannot_tell", ())
    assert found.not_observed[0] == "all wait for the network, or for a rank that tells nothing: 5"


def test_a_rank_that_is_far_off_in_half_of_the_steps_is_told_and_not_named():
    parts = healthy()
    parts["compute_s"][3] *= 1 + 0.6 * AFTER * (np.arange(STEPS) % 2)
    found = answer(told(parts))
    assert found.culprits == ()
    assert any("rank 3 works 1.6" in line and "in 50% of the newest steps" in line for line in found.evidence)


def test_a_lost_line_of_who_waits_least_makes_no_slower_network():
    parts = healthy()
    parts["compute_s"][5, ONSET + 20 :] *= 1.4
    table = told(parts)
    lost = np.random.default_rng(1).random(table.shape) < 0.1
    values = {name: np.where(lost, np.nan, seconds) for name, seconds in table.values.items()}
    found = answer(replace(table, values=values))
    assert (found.cause, found.culprits) == ("slow.straggler.software", (5,))
    assert verdicts(found)["slow.communication"] == "ruled_out"


def test_compute_by_the_wall_holds_the_waiting_and_is_not_believed():
    parts = healthy()
    parts["compute_s"][5] *= 1 + 0.4 * AFTER
    table = told(parts)
    wall_s = table.of("step_time_s") - table.of("data_wait_s")
    found = answer(replace(table, values={**table.values, "compute_s": wall_s}))
    assert found.culprits == (5,)


def test_steps_ten_percent_longer_with_as_many_tokens_are_slow():
    parts = healthy()
    parts["tokens"] = np.full((RANKS, STEPS), 4096.0)
    parts["compute_s"] = parts["compute_s"] * (1 + 0.13 * AFTER)
    assert answer(told(parts)).verdict == "slow"


def test_single_slow_reads_are_chance_where_they_are_few():
    parts = healthy(steps=120)
    slow = np.random.default_rng(4).random((RANKS, 120)) < 0.004
    parts["data_wait_s"] = parts["data_wait_s"] + 0.8 * slow
    parts["compute_s"] = parts["compute_s"] * (1 + 0.12 * (np.arange(120) >= 60))
    assert answer(told(parts)).cause != "slow.data"


def test_what_came_and_went_before_does_not_hide_that_all_became_slower():
    parts = healthy(steps=120)
    parts["compute_s"][2, 6:16] *= 1.6
    parts["compute_s"][4, 30:41] *= 1.6
    parts["compute_s"] = parts["compute_s"] * (1 + 0.4 * (np.arange(120) >= 66))
    found = answer(told(parts))
    assert (found.slower, abs(found.since_step - 67) <= 2) == (True, True)


def test_noise_that_lasts_takes_longer_to_be_believed():
    steps, ranks = STEPS, RANKS
    parts = healthy()
    drifts = np.zeros((ranks, steps))
    new = noise(7, (ranks, steps), 0.03 * np.sqrt(1 - 0.9**2))
    for step in range(1, steps):
        drifts[:, step] = 0.9 * drifts[:, step - 1] + new[:, step]
    parts["compute_s"] = parts["compute_s"] * (1 + drifts)
    table = told(parts)
    assert all(answer(table.between(1, end)).culprits == () for end in range(60, steps, 20))


def test_a_save_among_the_newest_steps_of_a_climb_hides_nothing():
    parts = healthy()
    climbs = np.clip(np.arange(STEPS) - 270, 0, None) / 30
    parts["num_alloc_retries"] = parts["num_alloc_retries"] + np.cumsum(1.0 * (climbs > 0))
    parts["compute_s"] = parts["compute_s"] * (1 + 0.3 * (climbs > 0) + 0.5 * climbs)
    table = told(parts)
    saves = np.arange(STEPS) == 296
    found = answer(replace(table, marks=replace(table.marks, checkpoint=saves)))
    assert (found.slower, found.cause) == (True, "slow.fragmentation")
