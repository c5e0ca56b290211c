"""What the cards and ports say is joined to the steps of made runs: it says why, and never who."""

from __future__ import annotations

import json

import pytest

from train_ledger.chaos.fleet import START_T
from train_ledger.chaos.slow_fleet import SlowPlan, simulate, write_job
from train_ledger.chaos.story import identity_at
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.ops.slow import look_at

HOSTS, PER_HOST, ONSET_T = 2, 4, START_T + 600.0
CULPRIT = 5
EVERY_S = 30
CLOCK, REASONS = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
USUAL = {
    CLOCK: 1980, REASONS: 0, "DCGM_FI_DEV_GPU_UTIL": 98, "DCGM_FI_DEV_GPU_TEMP": 61,
    "DCGM_FI_DEV_POWER_USAGE": 690, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.45,
    "DCGM_FI_PROF_NVLINK_TX_BYTES": 9e10,
    "DCGM_FI_PROF_NVLINK_RX_BYTES": 9e10, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 3,
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 0, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": 0,
}  # fmt: skip
PORT = {"state_id": 4, "rate_bytes_per_second": 50e9, "symbol_error_total": 0}


def made(path, cause, *, of_card=None, of_port=None, seed=3, **more):
    """A run of eight ranks with this fault from the middle on, and what its cards and ports then tell."""
    plan = SlowPlan(
        seed, dp=8, ranks_per_host=PER_HOST, steps=300, step_s=4.0, onset=150, cause=cause, effect=0.4, **more
    )
    job = simulate(plan)
    run_dir = write_job(job, path / "run")
    end_t = float(job.table.t[0, -1])
    run_dir.hardware.mkdir()
    for place in range(HOSTS):
        lines = []
        host = f"node{place:03d}"
        for t in range(int(START_T), int(end_t), EVERY_S):
            since = max(0.0, t - ONSET_T)
            for gpu in range(PER_HOST):
                values = dict(USUAL)
                if of_card is not None:
                    values |= of_card(place * PER_HOST + gpu, since, t)
                uuid = identity_at(host, gpu, 0)["uuid"]
                lines.append({"t": t, "host": host, "gpu": gpu, "uuid": uuid, "by": "nvml", **values})
            port = PORT | (of_port(place, since) if of_port is not None else {})
            lines.append({"t": t, "host": host, "device": "mlx5_0", "port": 1, "by": "sysfs", **port})
        path_of = run_dir.hardware / f"{host}.jsonl"
        path_of.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run_dir, job, end_t + 1.0


def only(rank, **values):
    """These values on one card, from the fault on."""
    return lambda of, since, _t: values if of == rank and since else {}


def culprit_of(job):
    (rank,) = job.truth.ranks
    return rank


def suspect(found, cause):
    return next(it for it in found.details.suspects if it.cause == cause)


CULPRITS = {
    "heat": ({CLOCK: 1410, REASONS: 0x20, "DCGM_FI_DEV_GPU_TEMP": 91}, "clock", "thermal slowdown"),
    "power brake": ({CLOCK: 1200, REASONS: 0x80}, "clock", "power brake"),
    "a lower clock": ({CLOCK: 1350}, "clock", "1350 MHz"),
    "less over NVLink": (
        {"DCGM_FI_PROF_NVLINK_TX_BYTES": 3e10, "DCGM_FI_PROF_NVLINK_RX_BYTES": 3e10}, "link",
        "NVLink carries 60 GB/s where the cards beside it carry 180",
    ),
    "PCIe replays": ({"DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 250_003}, "link", "PCIe has replayed 250000"),
}  # fmt: skip


@pytest.mark.parametrize("fault", CULPRITS)
def test_the_card_of_the_rank_that_drags_says_why(tmp_path, fault):
    values, cause, words = CULPRITS[fault]
    rank = culprit_of(simulate(SlowPlan(3, dp=8, steps=300, onset=150, cause="slow.straggler.clock")))
    run_dir, job, t = made(tmp_path, "slow.straggler.clock", of_card=only(rank, **values))
    assert culprit_of(job) == rank
    for found in (diagnose(run_dir, Config(), at=t), look_at(run_dir, Config(), at=t)):
        assert (found.cause, found.ranks) == (f"slow.straggler.{cause}", (rank,))
        assert words in suspect(found, found.cause).by
    other = {"clock": "link", "link": "clock"}[cause]
    assert suspect(found, f"slow.straggler.{other}").verdict == "ruled_out"
    assert len(found.gpus) == 1


def test_nvlink_errors_that_grow_say_why(tmp_path):
    rank = culprit_of(simulate(SlowPlan(3, dp=8, steps=300, onset=150, cause="slow.straggler.clock")))

    def errors(of, since, _t):
        return {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": int(since) if of == rank else 0}

    run_dir, _, t = made(tmp_path, "slow.straggler.clock", of_card=errors)
    found = diagnose(run_dir, Config(), at=t)
    assert (found.cause, found.ranks) == ("slow.straggler.link", (rank,))
    assert "nvlink_crc_flit_error +" in suspect(found, "slow.straggler.link").by


def test_a_rank_whose_card_is_well_drags_by_its_host_code(tmp_path):
    run_dir, job, t = made(tmp_path, "slow.straggler.clock")
    found = diagnose(run_dir, Config(), at=t)
    assert (found.cause, found.ranks, found.confidence) == (
        "slow.straggler.software",
        job.truth.ranks,
        "high",
    )
    assert "1980 MHz" in suspect(found, "slow.straggler.clock").by
    assert suspect(found, "slow.straggler.link").verdict == "ruled_out"


def test_one_reading_between_two_steps_is_no_slow_card(tmp_path):
    idle = {
        CLOCK: 345,
        "DCGM_FI_DEV_GPU_UTIL": 0,
        "DCGM_FI_PROF_NVLINK_TX_BYTES": 0,
        "DCGM_FI_PROF_NVLINK_RX_BYTES": 0,
    }
    rank = culprit_of(simulate(SlowPlan(3, dp=8, steps=300, onset=150, cause="slow.straggler.clock")))
    last = []

    def at_the_end(of, _since, t):
        last.append(t)
        return idle if of == rank and t >= max(last) and t % (4 * EVERY_S) == 0 else {}

    run_dir, _, t = made(tmp_path, "slow.straggler.clock", of_card=at_the_end)
    assert diagnose(run_dir, Config(), at=t).cause == "slow.straggler.software"


def test_a_hot_card_is_not_why_a_rank_waits_for_its_data(tmp_path):
    seed = next(
        seed for seed in range(50)
        if simulate(SlowPlan(seed, dp=8, steps=300, onset=150, cause="slow.straggler.software")).truth.part
        == "data_wait_s"
    )  # fmt: skip
    rank = culprit_of(simulate(SlowPlan(seed, dp=8, steps=300, onset=150, cause="slow.straggler.software")))
    hot = only(rank, **{CLOCK: 1410, REASONS: 0x20})
    run_dir, _, t = made(tmp_path, "slow.straggler.software", of_card=hot, seed=seed)
    found = diagnose(run_dir, Config(), at=t)
    assert (found.cause, found.ranks) == ("slow.straggler.software", (rank,))
    assert "not what makes these ranks drag, which is their data" in suspect(found, "slow.straggler.clock").by


@pytest.mark.parametrize(
    "of_port",
    [
        lambda place, since: {"symbol_error_total": int(since * 10) if place == 1 else 0},
        lambda place, since: {"rate_bytes_per_second": 12.5e9 if place == 1 and since else 50e9},
    ],
    ids=["errors", "a lower rate"],
)
def test_slow_transfers_with_one_port_in_trouble_name_its_host_and_no_rank(tmp_path, of_port):
    run_dir, _, t = made(tmp_path, "slow.straggler.link", of_port=of_port)
    found = diagnose(run_dir, Config(), at=t)
    assert (found.cause, found.ranks, found.hosts) == ("slow.straggler.link", (), ("node001",))


def test_slow_transfers_with_links_that_are_well_are_the_network(tmp_path):
    run_dir, _, t = made(tmp_path, "slow.communication")
    found = diagnose(run_dir, Config(), at=t)
    assert (found.cause, found.ranks, found.hosts) == ("slow.communication", (), ())
    assert suspect(found, "slow.straggler.link").verdict == "ruled_out"


@pytest.mark.parametrize(
    "cause",
    ["slow.data", "slow.fragmentation", "slow.logging", "slow.checkpoint", "slow.gc", "slow.host_memory"],
)
def test_what_slows_all_stays_what_it_is_beside_healthy_cards(tmp_path, cause):
    run_dir, _, t = made(tmp_path, cause)
    found = diagnose(run_dir, Config(), at=t)
    assert (found.cause, found.ranks) == (cause, ())


def test_a_hot_innocent_is_not_named_where_all_wait_for_data(tmp_path):
    run_dir, _, t = made(tmp_path, "slow.data", of_card=only(2, **{CLOCK: 1700, REASONS: 0x20}))
    found = diagnose(run_dir, Config(), at=t)
    assert (found.cause, found.ranks, found.gpus) == ("slow.data", (), ())


def test_clocks_that_are_low_on_all_cards_slow_all_and_name_nobody(tmp_path):
    def capped(_of, since, _t):
        return {CLOCK: 1300, REASONS: 0x80} if since else {}

    run_dir, job, t = made(tmp_path, "slow.host_memory", of_card=capped)
    found = look_at(run_dir, Config(), at=t)
    assert (job.truth.ranks, found.ranks) == ((), ())


def test_replays_of_long_ago_are_not_why_a_rank_drags_now(tmp_path):
    old = {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 90_000}
    rank = culprit_of(simulate(SlowPlan(3, dp=8, steps=300, onset=150, cause="slow.straggler.clock")))
    run_dir, _, t = made(
        tmp_path, "slow.straggler.clock", of_card=lambda of, _since, _t: old if of == rank else {}
    )
    assert diagnose(run_dir, Config(), at=t).cause == "slow.straggler.software"


def test_power_and_tensor_activity_far_from_the_others_are_told(tmp_path):
    rank = culprit_of(simulate(SlowPlan(3, dp=8, steps=300, onset=150, cause="slow.straggler.clock")))
    weak = only(rank, **{"DCGM_FI_DEV_POWER_USAGE": 340, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.2})
    run_dir, _, t = made(tmp_path, "slow.straggler.clock", of_card=weak)
    by = suspect(diagnose(run_dir, Config(), at=t), "slow.straggler.clock").by
    assert "340 W (far from the others 690)" in by
    assert "20 % tensor active (far from the others 45)" in by
