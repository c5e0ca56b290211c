"""Series as a Prometheus would hold them, and what is said of them."""

from __future__ import annotations

import pytest

from train_ledger.config import Config
from train_ledger.ops.prometheus import diagnose_state, state_of
from train_ledger.sources.prometheus import RunSeries, Sample

T = 1_800_000_000.0
HOSTS = ("n0", "n1")


def sample(name, value, instance="n0:9466", t=T, **labels):
    return Sample(name, {"run": "r42", "instance": instance, **labels}, t, float(value))


def of_rank(rank, step=100, ago_s=1.0, **more):
    host = HOSTS[rank // 4]
    who = {"instance": f"{host}:9466", "rank": str(rank)}
    yield sample("train_rank_info", 1, host=host, gpu=str(rank % 4), uuid=f"GPU-{rank}", **who)
    yield sample("train_step", step, **who)
    yield sample("train_last_step_completed_timestamp_seconds", T - ago_s, **who)
    yield sample("train_last_log_timestamp_seconds", T - ago_s, **who)
    yield sample("train_process_up", more.pop("up", 1), **who)
    yield sample("train_loss_is_finite", more.pop("finite", 1), **who)
    yield from (sample(f"train_{name}", value, **who) for name, value in more.items())


def of_host(host, restarts=0, **more):
    told = {
        "stall_threshold_seconds": 90,
        "step_time_seconds_p50": 1.0,
        "restart_total": restarts,
        "attempt_started_timestamp_seconds": T - 4000,
        "run_started_timestamp_seconds": T - 9000,
        "run_finished": 0,
        **more,
    }
    yield from (sample(f"train_{name}", value, f"{host}:9466") for name, value in told.items())


def series(*parts, **more):
    """Eight ranks on two hosts that step, and these samples in place of or beside theirs."""
    samples = {}
    plain = [it for rank in range(8) for it in of_rank(rank)] + [it for host in HOSTS for it in of_host(host)]
    for it in (*plain, *(it for part in parts for it in part)):
        samples[it.name, tuple(sorted(it.labels.items()))] = it
    by_name = {}
    for it in samples.values():
        by_name.setdefault(it.name, []).append(it)
    living = frozenset(f"{host}:9466" for host in HOSTS)
    told = {name: tuple(some) for name, some in by_name.items()}
    offsets = dict.fromkeys(living, 0.0)
    return RunSeries("r42", T, told, **{"offsets_s": offsets, "living": living, **more})


def diagnosed(given, config=None):
    config = config or Config()
    return diagnose_state(given, state_of(given, config), config, "http://prometheus:9090")


def stalled(*parts, **more):
    return series(*(of_rank(rank, ago_s=300) for rank in range(8)), *parts, **more)


def test_nothing_is_wrong_with_a_run_that_steps():
    found = diagnosed(series())
    assert (found.state, found.cause, found.ranks, found.next) == ("running", "none", (), ())


def test_times_are_read_on_prometheus_clock():
    ahead = [of_rank(rank, ago_s=300 - 5000) for rank in range(4, 8)]
    given = series(
        *(of_rank(rank, ago_s=300) for rank in range(4)),
        *ahead,
        offsets_s={"n0:9466": 0.0, "n1:9466": -5000.0},
    )
    state = state_of(given, Config())
    assert state.ranks[5].step_t == pytest.approx(T - 300)
    assert state.stalled_for_s == pytest.approx(300)


def test_a_stall_blames_nobody_by_itself():
    found = diagnosed(stalled())
    assert (found.state, found.cause, found.ranks) == ("stalled", "unknown", ())
    assert found.impact.gpu_hours == pytest.approx(8 * 300 / 3600)
    assert any("train_process_up is 1" in line for line in found.evidence)


def test_a_process_that_is_gone_is_why_the_others_wait():
    gone = [*of_rank(5, ago_s=300, up=0, process_gone_timestamp_seconds=T - 290)]
    found = diagnosed(stalled(gone))
    assert (found.cause, found.ranks, found.hosts) == ("hang.rank_died", (5,), ("n1",))
    assert any("train_process_up is 0 for rank 5" in line for line in found.evidence)
    assert any(it.command.startswith("ssh n1 ") for it in found.next)


def test_where_no_exporter_lives_it_does_not_show_whether_the_run_stands():
    found = diagnosed(stalled(living=frozenset()))
    assert (found.cause, found.ranks) == ("telemetry_lost", ())
    assert "none of the run's 2 exporters" in found.evidence[0]
    assert diagnosed(stalled(living=frozenset({"n0:9466"}))).cause == "unknown"


def test_half_of_the_processes_gone_names_nobody():
    gone = [it for rank in range(4, 8) for it in of_rank(rank, ago_s=300, up=0)]
    assert diagnosed(stalled(gone)).ranks == ()


def test_an_xid_of_the_kernel_wins_over_its_stall():
    where = {"host": "n1", "gpu": "1", "uuid": "GPU-5", "code": "79", "level": "page", "instance": "n1:9466"}
    xids = (
        sample("train_xid_total", 1, **where),
        sample("train_xid_last_timestamp_seconds", T - 305, **where),
    )
    found = diagnosed(stalled(xids=xids))
    assert (found.cause, found.ranks, found.hosts, found.gpus) == ("hardware.xid", (5,), ("n1",), ("GPU-5",))


def test_an_old_xid_and_one_of_a_gpu_of_nobody_accuse_nobody():
    where = {"host": "n1", "gpu": "1", "uuid": "GPU-5", "code": "79", "level": "page", "instance": "n1:9466"}
    old = (
        sample("train_xid_total", 1, **where),
        sample("train_xid_last_timestamp_seconds", T - 9000, **where),
    )
    assert diagnosed(stalled(xids=old)).ranks == ()
    other = {**where, "host": "n9", "uuid": "GPU-99"}
    strange = (
        sample("train_xid_total", 1, **other),
        sample("train_xid_last_timestamp_seconds", T - 305, **other),
    )
    assert diagnosed(stalled(xids=strange)).ranks == ()


@pytest.mark.parametrize("label", ["UUID", "uuid"])
def test_an_xid_that_dcgm_alone_tells_counts_from_when_it_changed(label):
    where = {label: "GPU-5", "gpu": "1", "Hostname": "n1"}
    gpus = (sample("DCGM_FI_DEV_XID_ERRORS", 79, **where),)
    changed = {"DCGM_FI_DEV_XID_ERRORS": (sample("", T - 302, **where),)}
    assert diagnosed(stalled(gpus=gpus, changed_t=changed)).cause == "hardware.xid"
    assert diagnosed(stalled(gpus=gpus)).ranks == (), "it may be days old"


def test_an_uncorrected_memory_error_is_ecc():
    where = {"UUID": "GPU-2", "gpu": "2", "Hostname": "n0"}
    changed = {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": (sample("", T - 60, **where),)}
    found = diagnosed(series(changed_t=changed))
    assert (found.cause, found.ranks) == ("hardware.ecc", (2,))


def test_a_loss_that_is_not_finite_names_a_rank_only_where_the_others_was():
    found = diagnosed(series(of_rank(3, finite=0)))
    assert (found.cause, found.ranks) == ("numeric.nan", (3,))
    everywhere = diagnosed(series(*(of_rank(rank, finite=0) for rank in range(8))))
    assert (everywhere.cause, everywhere.ranks) == ("numeric.nan", ())
    behind = diagnosed(series(of_rank(3, step=101, finite=0)))
    assert (behind.cause, behind.ranks) == ("numeric.nan", ()), "the others have not come to that step"


def test_who_came_to_that_step_later_counts_too():
    late = of_rank(6, step=97)
    bad = of_rank(3, finite=0)
    assert diagnosed(series(late, bad)).ranks == ()
    late, bad = of_rank(6, step=97), of_rank(3, finite=0)
    by = (sample("train_step", 95, rank="3"),)
    assert diagnosed(series(late, bad, nonfinite_by=by)).ranks == (3,)


def test_a_loss_that_is_finite_again_still_counts():
    grown = {"nonfinite": (sample("", 2, rank="3"),)}
    found = diagnosed(series(grown=grown))
    assert (found.cause, found.ranks) == ("numeric.nan", (3,))
    assert any("finite again" in line for line in found.evidence)


def test_restarts_in_a_row_are_a_loop():
    grown = {"restarts": (sample("", 3),)}
    assert diagnosed(series(grown=grown)).cause == "restart_loop"
    assert diagnosed(series(grown={"restarts": (sample("", 2),)})).cause == "none"


def test_saves_that_fail_or_do_not_come():
    assert diagnosed(series(grown={"failed saves": (sample("", 1.02),)})).cause == "checkpoint_failing"
    due = [sample("train_ckpt_due_timestamp_seconds", T - 30)]
    assert diagnosed(series(due)).cause == "checkpoint_failing"
    assert diagnosed(series([sample("train_ckpt_due_timestamp_seconds", "nan")])).cause == "none"
    assert diagnosed(series([sample("train_ckpt_slow_saves", 2)])).cause == "slow.checkpoint"


def test_a_rank_that_drags_is_told_with_what_its_card_says():
    drags = [sample("train_rank_outlier_ratio", 1.4, "n1:9466", rank="5", host="n1")]
    blind = diagnosed(series(drags))
    assert (blind.cause, blind.ranks, blind.confidence) == ("slow.straggler.software", (5,), "low")
    assert any(line.startswith("slow.straggler.clock: hardware") for line in blind.not_observed)
    clocks = dict.fromkeys(range(8), 1980) | {5: 1200}
    gpus = tuple(sample("DCGM_FI_DEV_SM_CLOCK", mhz, UUID=f"GPU-{rank}") for rank, mhz in clocks.items())
    seen = diagnosed(series(drags, gpus=gpus))
    assert (seen.cause, seen.ranks, seen.hosts) == ("slow.straggler.clock", (5,), ("n1",))
    even = tuple(sample("DCGM_FI_DEV_SM_CLOCK", 1980, UUID=f"GPU-{rank}") for rank in range(8))
    found = diagnosed(series(drags, gpus=even))
    assert [it.cause for it in found.ruled_out] == ["slow.straggler.clock"]


def test_a_run_that_stands_drags_nobody():
    drags = [sample("train_rank_outlier_ratio", 1.4, "n1:9466", rank="5", host="n1")]
    assert diagnosed(stalled(drags)).ranks == ()


def test_waiting_for_data_memory_and_saves_that_take_longer():
    assert diagnosed(series(of_rank(3, data_wait_fraction=0.3))).cause == "slow.data"
    assert diagnosed(series(of_rank(3, data_wait_fraction=0.01))).cause == "none"
    assert diagnosed(series(of_rank(3, fragmented_alloc_retries=12))).cause == "slow.fragmentation"
    assert diagnosed(series([sample("train_ckpt_duration_ratio", 2.5)])).cause == "slow.checkpoint"


def test_slower_steps_without_a_gauge_that_says_why_are_unknown():
    slower = [
        sample("train_step_time_recent_seconds", 3.2),
        sample("train_step_time_usual_seconds", 1.0),
    ]
    found = diagnosed(series(slower))
    assert (found.cause, found.ranks) == ("unknown", ())
    assert "became 3.2 s, was 1 s" in found.evidence[0]


def test_a_run_that_ended_is_well():
    ended = [sample("train_run_finished", 1, f"{host}:9466") for host in HOSTS]
    found = diagnosed(series(*(of_rank(rank, ago_s=90_000) for rank in range(8)), ended))
    assert (found.state, found.cause) == ("finished", "none")


def test_labels_that_are_hostile_do_nothing():
    odd = [
        sample("train_step", 1, rank="x"),
        sample("train_step", 1, rank="9" * 30),
        sample("train_rank_info", 1, rank="7", host="\x1b[2J--help", gpu="many", instance="n1:9466"),
    ]
    found = diagnosed(stalled(odd))
    assert found.cause == "unknown"
    assert all("--help" not in it.command for it in found.next)
