"""A run that became slower is told, with what makes it wait; a healthy one is not, whatever it does."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from train_ledger.config import Alerts, Config
from train_ledger.dash.rule import Firing
from train_ledger.dash.rules.speed import SPEED_RULES
from train_ledger.dash.speed_metrics import outliers_text, speed_text
from train_ledger.facts import Event, Fact, Step
from train_ledger.ledger import Fold, RunState

ALERTS = Alerts()
CHECKS = {rule.name: rule.check for rule in SPEED_RULES}
T0 = 1_764_000_000.0

Told = Callable[[int, int], Mapping[str, float]]
"""What a rank writes of a step: (step, rank) to values."""


class Job:
    """Ranks that complete steps together, in the time that passes between them."""

    def __init__(self, ranks: int = 1, hosts: int = 1, **run_json: Any) -> None:
        self.ranks, self.hosts = ranks, hosts
        self.t, self.step, self.attempt = T0, 0, 0
        self.fold = Fold("r42", Config(), {"world_size": ranks, **run_json})
        self.start()

    def _all(self, fact: Callable[[int, str], Fact]) -> None:
        for rank in range(self.ranks):
            self.fold.add(fact(rank, f"n{rank * self.hosts // self.ranks}"))

    def event(self, name: str, **details: Any) -> None:
        self._all(lambda rank, host: Event(self.t, name, rank, self.step, self.attempt, host, "", details))

    def start(self) -> None:
        self.event("run_start", world_size=self.ranks)

    def restart(self, after_s: float, back: int = 0) -> None:
        self.t += after_s
        self.attempt += 1
        self.step -= back
        self.start()

    def run(self, minutes: float, step_s: float | Callable[[], float], told: Told | None = None) -> None:
        until = self.t + 60 * minutes
        while self.t < until:
            took_s = step_s() if callable(step_s) else step_s
            self.t, self.step = self.t + took_s, self.step + 1
            for rank in range(self.ranks):
                values = {"step_time_s": took_s, **(told(self.step, rank) if told else {})}
                host = f"n{rank * self.hosts // self.ranks}"
                self.fold.add(Step(self.t, self.step, rank, self.attempt, host, values=values))

    def pause(self, minutes: float, phase: str) -> None:
        self.event("phase_start", phase=phase)
        self.t += 60 * minutes
        self.event("phase_end", phase=phase)

    def state(self, later_s: float = 0.0) -> RunState:
        return self.fold.state(self.t + later_s)

    def firing(self, name: str, later_s: float = 0.0) -> Firing | None:
        found = self.firings(name, later_s)
        assert len(found) <= 1
        return found[0] if found else None

    def firings(self, name: str, later_s: float = 0.0) -> list[Firing]:
        return list(CHECKS[name](self.state(later_s), ALERTS))


SLOWER = "TrainingStepTimeRegressed"


def test_twelve_seconds_that_became_forty_on_all_ranks_are_told() -> None:
    job = Job(ranks=2)
    job.run(90, 12.0)
    assert job.firing(SLOWER) is None
    job.run(5, 40.0)
    assert job.firing(SLOWER) is None, "most of the last ten minutes' steps took as long as ever"
    job.run(5, 40.0)
    slower = job.firing(SLOWER)
    assert slower is not None
    assert slower.labels == {"run": "r42"}
    assert slower.value == pytest.approx(40 / 12, rel=0.03)
    assert "the median step time became 40 s (last 10 min, " in slower.summary
    assert "was 12 s in an earlier hour, step " in slower.summary


def test_it_ends_by_itself_when_the_new_pace_is_the_usual_one() -> None:
    job = Job()
    job.run(90, 12.0)
    job.run(12, 24.0)
    assert job.firing(SLOWER) is not None
    job.run(70, 24.0)
    assert job.firing(SLOWER) is None


def test_a_schedule_of_two_paces_is_no_regression() -> None:
    job = Job()
    for _ in range(4):
        job.run(15, 12.0)
        job.run(15, 20.0)
    told = []
    for place in range(60):
        job.run(1, 12.0 if place % 30 < 15 else 20.0)
        told.append(job.firing(SLOWER))
    assert not any(told)


def test_heavy_tails_are_no_regression() -> None:
    noise = random.Random(7)
    job = Job()
    for _ in range(200):
        job.run(1, lambda: 5.0 * noise.paretovariate(2.0))
        assert job.firing(SLOWER) is None


def test_pauses_and_what_follows_them_are_none() -> None:
    job = Job()
    job.run(100, 6.0)
    for phase in ("checkpoint_save", "evaluation", "compile"):
        job.pause(9, phase)
        assert job.firing(SLOWER) is None
        job.run(0.5, 30.0)
        assert job.firing(SLOWER) is None, "fewer than half of the last minutes' steps"
        job.run(12, 6.0)
        assert job.firing(SLOWER) is None


def test_steps_that_save_are_left_out() -> None:
    job = Job()
    job.run(100, 6.0)
    job.run(15, 30.0, lambda step, rank: {"ckpt_s": 24.0})
    assert job.firing(SLOWER) is None


def test_a_restart_warms_up_in_peace_and_remembers_the_attempt_before() -> None:
    job = Job()
    job.run(100, 12.0)
    job.restart(after_s=900.0, back=20)
    job.run(9, 40.0)
    assert job.firing(SLOWER) is None, "caches fill, kernels are tuned"
    job.run(5, 40.0)
    slower = job.firing(SLOWER)
    assert slower is not None, "the usual hour lies in the attempt before"
    assert "attempt 1" in slower.summary


def test_an_attempt_of_another_size_is_none_to_compare_with() -> None:
    job = Job(ranks=4)
    job.run(100, 12.0)
    job.ranks = 2
    job.restart(after_s=600.0)
    job.run(30, 24.0)
    assert job.firing(SLOWER) is None


@pytest.mark.parametrize(
    ("step_s", "steps", "tells"), [(300.0, 1, False), (300.0, 2, True), (700.0, 4, False)]
)
def test_where_steps_are_long_it_takes_three_of_them_before_the_usual_hour_ends(
    step_s: float, steps: int, tells: bool
) -> None:
    """Ten minutes are five steps of two minutes, and the hour is as long as it takes to see a hundred."""
    job = Job()
    job.run(300, 120.0)
    job.run(steps * step_s / 60, step_s)
    assert (job.firing(SLOWER) is not None) == tells


def test_too_short_a_history_is_none() -> None:
    job = Job()
    job.run(15, 12.0)
    job.run(15, 40.0)
    assert job.firing(SLOWER) is None


def test_a_stall_is_not_told_as_a_slow_step() -> None:
    job = Job()
    job.run(90, 12.0)
    job.run(12, 40.0)
    assert job.firing(SLOWER) is not None
    assert job.firing(SLOWER, later_s=3600.0) is None


# -- mfu


def _mfu(percent: float) -> Told:
    return lambda step, rank: {"mfu": percent}


def test_mfu_that_is_low_for_half_an_hour() -> None:
    job = Job(mfu_baseline=40.0)
    job.run(60, 12.0, _mfu(40.0))
    job.run(28, 12.0, _mfu(32.0))
    assert job.firing("TrainingMfuDegraded") is None
    job.run(3, 12.0, _mfu(32.0))
    low = job.firing("TrainingMfuDegraded")
    assert low is not None
    assert low.value == pytest.approx(0.8)
    assert "MFU is at most 80% of its baseline (32 of 40 percent) for 30 min, step " in low.summary
    assert job.firing("TrainingMfuDrift") is None
    job.run(3, 12.0, _mfu(40.0))
    assert job.firing("TrainingMfuDegraded") is None


def test_mfu_that_drifts_is_on_record() -> None:
    job = Job(mfu_baseline=40.0)
    job.run(60, 12.0, _mfu(36.0))
    assert job.firing("TrainingMfuDegraded") is None
    assert job.firing("TrainingMfuDrift") is not None
    job.run(40, 12.0, _mfu(38.5))
    assert job.firing("TrainingMfuDrift") is None


def test_a_baseline_that_was_told_once_and_a_rank_without_numbers_silence_nothing() -> None:
    job = Job(ranks=4)

    def told(step: int, rank: int) -> dict[str, float]:
        baseline = {"mfu_baseline": 40.0} if step == 5 and rank == 3 else {}
        return {"mfu": math.nan if rank == 0 and step > 100 else 30.0, **baseline}

    job.run(70, 12.0, told)
    assert job.firing("TrainingMfuDegraded") is not None
    job.restart(after_s=300.0)
    job.run(20, 12.0, told)
    assert job.firing("TrainingMfuDegraded") is None, "the attempt is younger than the window"
    job.pause(6, "checkpoint_save")
    job.run(10, 12.0, told)
    assert job.firing("TrainingMfuDegraded") is not None, "a checkpoint begins nothing anew"


def test_without_a_baseline_there_is_no_figure() -> None:
    job = Job()
    job.run(70, 12.0, _mfu(1.0))
    assert job.firing("TrainingMfuDegraded") is None
    assert "train_mfu_sustained_fraction" not in speed_text(job.state(), ALERTS)


def test_a_fraction_where_percent_are_wanted_pages_nobody() -> None:
    job = Job(mfu_baseline=40.0)
    job.run(70, 12.0, _mfu(0.4))
    assert job.firing("TrainingMfuDegraded") is None


# -- who makes it wait


def test_one_rank_of_many_that_waits_for_data_is_named() -> None:
    job = Job(ranks=128, hosts=16)
    job.run(20, 12.0, lambda step, rank: {"data_wait_s": 6.0 if rank == 77 else 0.01})
    waits = job.firing("DataLoadingWait")
    assert waits is not None
    assert waits.labels == {"run": "r42"}
    assert "rank 77 on n9 waited for data for 50% of its steps" in waits.summary


@pytest.mark.parametrize("wait_s", [math.nan, -5.0, 1e9])
def test_what_is_no_time_is_no_wait(wait_s: float) -> None:
    job = Job()
    job.run(20, 12.0, lambda step, rank: {"data_wait_s": wait_s})
    assert job.firing("DataLoadingWait") is None


def test_a_slow_batch_is_judged_by_the_sums() -> None:
    job = Job()
    job.run(20, 12.0, lambda step, rank: {"data_wait_s": 10.0 if step == 60 else 0.0})
    assert job.firing("DataLoadingWait") is None
    assert job.state().ranks[0].data_wait_fraction == pytest.approx(10 / 900, rel=0.3)
    zero = Job()
    zero.run(20, 12.0, lambda step, rank: {"data_wait_s": 0.0, "step_time_s": 0.0})
    assert zero.firing("DataLoadingWait") is None


def _compute(slow: Callable[[int, int], float]) -> Told:
    noise = random.Random(3)
    return lambda step, rank: {"compute_s": 8.0 * slow(step, rank) * noise.gauss(1.0, 0.004)}


def outliers(job: Job) -> list[dict[str, str]]:
    return [dict(it.labels) for it in job.firings("RankStepTimeOutlier")]


def test_a_slow_rank_is_named_by_its_own_work() -> None:
    job = Job(ranks=16, hosts=2)
    job.run(10, 10.0, _compute(lambda step, rank: 1.2 if rank == 5 else 1.0))
    assert outliers(job) == [{"run": "r42", "rank": "5", "host": "n0"}]
    assert 'train_rank_outlier_ratio{run="r42",rank="5",host="n0"} 1.19' in outliers_text(job.state())
    assert (
        "own work 20% over its peers' in 100% of the last steps"
        in job.firings("RankStepTimeOutlier")[0].summary
    )


SLOW: dict[str, tuple[Callable[[int, int], float], dict[str, Any], list[str]]] = {
    "nobody": (lambda step, rank: 1.0, {}, []),
    "in turns": (lambda step, rank: 1.3 if step % 16 == rank else 1.0, {}, []),
    "too little": (lambda step, rank: 1.03 if rank == 5 else 1.0, {}, []),
    "not often enough": (lambda step, rank: 1.3 if rank == 5 and step % 2 else 1.0, {}, []),
    "the worst of a host": (lambda step, rank: 1.2 + rank / 100 if rank < 4 else 1.0, {}, ["3"]),
    "half of the ranks": (lambda step, rank: 1.3 if rank < 8 else 1.0, {}, []),
    "a whole stage": (
        lambda step, rank: 1.5 if rank >= 12 else 1.0,
        {"parallelism": {"pp": 4, "dp": 4}},
        [],
    ),
    "one of a slow stage": (
        lambda step, rank: (1.5 if rank >= 12 else 1.0) * (1.2 if rank == 13 else 1.0),
        {"parallelism": {"pp": 4, "dp": 4}},
        ["13"],
    ),
    "a layout that cannot be": (
        lambda step, rank: 1.5 if rank == 3 else 1.0,
        {"parallelism": {"pp": 5}},
        [],
    ),
}


@pytest.mark.parametrize("slow", SLOW)
def test_who_is_an_outlier(slow: str) -> None:
    work, run_json, named = SLOW[slow]
    job = Job(ranks=16, hosts=4, **run_json)
    job.run(10, 12.0, _compute(work))
    assert [it["rank"] for it in outliers(job)] == named


def test_of_two_ranks_nobody_is_the_slow_one_and_without_own_work_nobody_is() -> None:
    job = Job(ranks=2)
    job.run(10, 10.0, _compute(lambda step, rank: 2.0 if rank else 1.0))
    assert outliers(job) == []
    untold = Job(ranks=8)
    untold.run(10, 10.0, lambda step, rank: {"fwd_s": 1.0 + rank})
    assert outliers(untold) == []


# -- memory and gradients


def _memory(retries: Callable[[int], float], inactive: Callable[[int], float]) -> Told:
    return lambda step, rank: {
        "num_alloc_retries": retries(step) if rank == 1 else 0.0,
        "mem_inactive_split": inactive(step) if rank == 1 else 1e9,
    }


def test_memory_that_falls_to_pieces_is_told_of_the_worst_rank() -> None:
    job = Job(ranks=4, hosts=2)
    job.run(50, 12.0, _memory(lambda step: step // 50, lambda step: 1e9 + 1e7 * step))
    told = job.firing("MemoryFragmentation")
    assert told is not None
    assert "on rank 1 on n0: 5 retries of allocation within 60 min" in told.summary
    job.run(80, 12.0, _memory(lambda step: 4.0, lambda step: 4e9))
    assert job.firing("MemoryFragmentation") is None, "an hour ago it was so, too"


@pytest.mark.parametrize(
    ("retries", "inactive"),
    [
        (lambda step: 0.0, lambda step: 1e7 * step),
        (lambda step: step, lambda step: 1e9),
        (lambda step: step, lambda step: math.nan),
    ],
    ids=["no retry", "as much memory", "no number"],
)
def test_one_of_both_is_no_fragmentation(
    retries: Callable[[int], float], inactive: Callable[[int], float]
) -> None:
    job = Job(ranks=2)
    job.run(50, 12.0, _memory(retries, inactive))
    assert job.firing("MemoryFragmentation") is None


def test_a_spike_of_the_gradient_norm_is_told_for_ten_minutes() -> None:
    job = Job(ranks=2)
    job.run(20, 12.0, lambda step, rank: {"grad_norm": 30.0 if step == 100 else 1.5} if rank == 1 else {})
    told = job.firing("GradNormSpike")
    assert told is not None
    assert told.summary == "r42: the gradient norm was 30 at step 100, 20 times the median before"
    assert job.firing("GradNormSpike", later_s=700.0) is None


@pytest.mark.parametrize("norm", [math.nan, math.inf, 14.9])
def test_what_is_no_spike(norm: float) -> None:
    job = Job()
    job.run(20, 12.0, lambda step, rank: {"grad_norm": norm if step == 100 else 1.5})
    assert job.firing("GradNormSpike") is None


def test_the_first_norms_fall_and_are_no_spikes() -> None:
    job = Job()
    job.run(20, 12.0, lambda step, rank: {"grad_norm": 500.0 if step == 15 else 1.5})
    assert job.firing("GradNormSpike") is None


def test_a_finished_run_is_quiet() -> None:
    job = Job(ranks=4, mfu_baseline=40.0)
    job.run(60, 12.0, lambda step, rank: {"mfu": 30.0, "data_wait_s": 3.0, "grad_norm": step**3.0})
    assert job.firing("DataLoadingWait") is not None
    job.event("run_end")
    assert [name for name in CHECKS if job.firings(name)] == []
    assert speed_text(job.state(), ALERTS) == ""
