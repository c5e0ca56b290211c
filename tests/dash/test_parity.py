"""The two judges agree: on the same run the embedded one and Prometheus say the same, at the same time."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import Alerts, Config
from train_ledger.dash.backtest import PastAlert, Recording, Replay, alerts_by_prometheus, record

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (prometheus)"
)

SOON = Alerts(
    stall_floor_s=20.0,
    start_up_limit_s=60.0,
    loss_window_s=60.0,
    restart_loop_window_s=600.0,
    checkpoint_window_s=120.0,
    process_gone_s=20.0,
    restart_inhibits_s=60.0,
    keep_firing_s=30.0,
)
"""So that a short run shows what takes hours otherwise."""

Occurrence = tuple[str, dict[str, str], str, float, float | None]


def both(recording: Recording, alerts: Alerts) -> tuple[list[Occurrence], list[Occurrence]]:
    """What the embedded judge and Prometheus say of a run, until nothing more can be paged."""
    config = Config(alerts=alerts)
    replay = Replay(recording.run, config, recording.run_json)
    until_t = replay.play_to_end(recording.known)
    began_t = recording.began_t
    theirs = alerts_by_prometheus(recording, config, until_t)
    return occurrences(replay.alerts, began_t), occurrences(theirs, began_t)


def occurrences(alerts: Sequence[PastAlert], began_t: float) -> list[Occurrence]:
    """Seconds from the run's first line on, so that a failure can be read."""
    return sorted(
        (
            (
                it.name,
                dict(it.labels),
                it.level,
                round(it.fired_t - began_t, 1),
                None if it.resolved_t is None else round(it.resolved_t - began_t, 1),
            )
            for it in alerts
        ),
        key=lambda it: (it[0], sorted(it[1].items()), it[3]),
    )


def assert_agree(ours: list[Occurrence], theirs: list[Occurrence], every_s: float = 5.0) -> None:
    assert [it[:3] for it in ours] == [it[:3] for it in theirs], (ours, theirs)
    for own, other in zip(ours, theirs, strict=True):
        assert abs(own[3] - other[3]) <= every_s, (own, other)
        assert (own[4] is None) == (other[4] is None), (own, other)
        assert own[4] is None or other[4] is None or abs(own[4] - other[4]) <= every_s, (own, other)


PAGED = {
    None: set(),
    "hang": {"TrainingStepStalled"},
    "init_hang": {"TrainingStepStalled"},
    "process_gone": {"TrainingStepStalled"},
    "exception": {"TrainingStepStalled"},
    "nan": {"TrainingLossNotFinite"},
    "restart": set(),
    "restart_loop": {"TrainingRestartLoop"},
    "killed": {"TrainingStepStalled"},
    "checkpoint_failed": {"CheckpointSaveFailed"},
    "slow_rank": set(),
    "slow_all": set(),
}
"""What each fault of a job has to page, whatever else it does."""


@pytest.mark.parametrize("fault", sorted(fleet.FAULTS, key=str))
def test_of_a_job_with_two_hosts_whose_clocks_differ(fault: str | None, tmp_path: Path) -> None:
    # Before a step that both completed nothing in the files says how far apart two clocks are.
    offsets_s = {} if fault == "init_hang" else {"node001": 33.0}
    job = fleet.write(
        tmp_path / "r42",
        ranks_per_host=2,
        fault=fault,
        culprit=3,
        steps=60,
        checkpoint_every=20,
        clock_offsets_s=offsets_s,
    )
    recording = record(job.run_dir)
    ours, theirs = both(recording, SOON)
    assert_agree(ours, theirs)
    assert {it[0] for it in ours if it[2] == "page"} >= PAGED[fault]


def test_every_fault_of_the_fleet_is_held_against_both() -> None:
    assert PAGED.keys() == fleet.FAULTS.keys()
