"""What facts add up to. Each test tells a short history and asks for the state at its end."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest

from train_ledger.config import Alerts, Config
from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.ledger import Fold, RunState

NAN = math.nan


class Job:
    """A synchronous job of four ranks on one host, steps of 10 s, told as facts."""

    def __init__(self, ranks: int = 4, step_s: float = 10.0) -> None:
        self.ranks = range(ranks)
        self.step_s = step_s
        self.t = 0.0
        self.step = 0
        self.attempt = 0
        self.facts: list[Fact] = []

    def event(
        self, name: str, ranks: Iterable[int] | None = None, step: int | None = None, **details: Any
    ) -> None:
        for rank in self.ranks if ranks is None else ranks:
            self.facts.append(Event(self.t, name, rank, step, self.attempt, "n0", details=details))

    def start(self, **details: Any) -> Job:
        self.event("run_start", world_size=len(self.ranks), host="n0", **details)
        return self

    def steps(self, count: int, ranks: Iterable[int] | None = None, **values: float) -> Job:
        for _ in range(count):
            self.t += self.step_s
            self.step += 1
            for rank in self.ranks if ranks is None else ranks:
                self.facts.append(
                    Step(self.t, self.step, rank, self.attempt, "n0", values=values or {"loss": 1.0})
                )
        return self

    def wait(self, seconds: float) -> Job:
        self.t += seconds
        return self

    def restart(self, from_step: int) -> Job:
        self.attempt += 1
        self.step = from_step
        return self.start()

    def state(self, after_s: float = 0.0, alerts: Alerts | None = None, **run_json: Any) -> RunState:
        fold = Fold("r42", Config(alerts=alerts or Alerts()), run_json)
        fold.add_all(self.facts)
        return fold.state(self.t + after_s)


class TestStepClock:
    def test_it_stands_where_half_of_the_ranks_stand(self) -> None:
        run = Job(ranks=8).start().steps(10).state(5)
        assert (run.step, run.last_step_t, run.stalled_for_s) == (10, 100.0, 5.0)

    def test_one_rank_that_runs_on_does_not_move_it(self) -> None:
        run = Job(ranks=8).start().steps(10).steps(50, ranks=[3]).state()
        assert (run.step, run.last_step_t, run.state) == (10, 100.0, "stalled")

    def test_nor_does_one_that_fell_silent(self) -> None:
        run = Job(ranks=8).start().steps(10).steps(50, ranks=[0, 1, 2, 4, 5, 6, 7]).state()
        assert (run.step, run.state) == (60, "running")

    def test_a_line_out_of_order_moves_nothing_back(self) -> None:
        job = Job().start().steps(10)
        job.facts.append(Step(97.0, 9, 0, values={"loss": 5.0}))
        rank = job.state().ranks[0]
        assert (rank.step, rank.step_t, rank.values) == (10, 100.0, {"loss": 1.0})

    def test_a_second_line_for_a_step_adds_values_and_does_not_move_the_clock(self) -> None:
        job = Job().start().steps(10)
        job.facts.append(Step(104.0, 10, 0, values={"mfu": 40.0}))
        rank = job.state(4).ranks[0]
        assert (rank.step_t, rank.heard_t) == (100.0, 104.0)
        assert rank.values == {"loss": 1.0, "mfu": 40.0}

    def test_a_step_that_goes_back_without_a_new_attempt_is_followed(self) -> None:
        job = Job().start().steps(50)
        job.step = 20
        run = job.steps(5).state()
        assert (run.step, run.state, run.last_step_t) == (25, "running", 550.0)


class TestMedianStepTime:
    def test_the_first_steps_of_an_attempt_compile_and_are_left_out(self) -> None:
        job = Job(step_s=300).start().steps(2)
        assert job.state().p50_step_time_s is None
        job.step_s = 10
        run = job.steps(1).state()
        assert run.p50_step_time_s == 10
        assert run.stall_threshold_s == 90

    def test_steps_with_a_checkpoint_inside_are_left_out(self) -> None:
        job = Job().start().steps(4)
        for _ in range(30):
            job.event("phase_start", phase="checkpoint_save")
            job.wait(100)
            job.event("phase_end", phase="checkpoint_save")
            job.steps(1)
        assert job.state().p50_step_time_s == 10

    def test_the_writers_own_timer_goes_before_the_clock(self) -> None:
        assert Job().start().steps(10, step_time_s=9.5).state().p50_step_time_s == 9.5

    def test_one_rank_with_a_step_time_that_is_no_number_poisons_nothing(self) -> None:
        job = Job().start()
        for _ in range(10):
            job.steps(1, ranks=[0], step_time_s=NAN)
            job.t -= job.step_s
            job.step -= 1
            job.steps(1, ranks=[1, 2, 3], step_time_s=10.0)
        assert job.state().p50_step_time_s == 10

    def test_lines_every_tenth_step_are_no_stalls(self) -> None:
        """12 s a step and one line in ten steps: 120 s between two lines are usual."""
        job = Job()
        job.start()
        for line in range(20):
            job.facts += [
                Step(line * 120.0, line * 10, rank, values={"step_time_s": 12.0}) for rank in job.ranks
            ]
        run = job.state()
        assert run.p50_step_time_s == 12
        assert run.stall_threshold_s == 360

    def test_it_is_kept_over_a_restart(self) -> None:
        assert Job(step_s=60).start().steps(30).restart(20).steps(1).state().stall_threshold_s == 180


class TestStall:
    @pytest.mark.parametrize(("after_s", "state"), [(90, "running"), (91, "stalled")])
    def test_after_ninety_seconds(self, after_s: float, state: str) -> None:
        assert Job().start().steps(10).state(after_s).state == state

    @pytest.mark.parametrize(("after_s", "state"), [(120, "running"), (121, "stalled")])
    def test_after_three_usual_steps_where_those_are_longer(self, after_s: float, state: str) -> None:
        assert Job(step_s=40).start().steps(10).state(after_s).state == state

    def test_the_floor_is_configurable(self) -> None:
        run = Job(step_s=1).start().steps(10).state(6, alerts=Alerts(stall_floor_s=5))
        assert (run.state, run.stall_threshold_s) == ("stalled", 5)

    def test_it_lasts_since_the_last_step(self) -> None:
        assert Job().start().steps(10).state(500).since_t == 100

    @pytest.mark.parametrize(("after_s", "state"), [(1800, "starting"), (1801, "stalled")])
    def test_before_the_first_step(self, after_s: float, state: str) -> None:
        assert Job().start().state(after_s).state == state

    @staticmethod
    def _compiles_after(start_up_s: float) -> Job:
        job = Job().start()
        job.event("phase_start", phase="start_up")
        job.wait(start_up_s)
        job.event("phase_end", phase="start_up")
        job.event("phase_start", phase="compile")
        return job

    def test_a_long_start_in_phases_that_say_when_they_end_has_a_limit_for_each(self) -> None:
        job = self._compiles_after(1200)
        assert (job.state(1800).state, job.state(1801).state) == ("starting", "stalled")
        job.wait(1500)
        job.event("phase_end", phase="compile")
        assert (job.state(600).state, job.state(601).state) == ("starting", "stalled")

    def test_a_short_phase_of_the_start_does_not_lengthen_it(self) -> None:
        job = self._compiles_after(60)
        assert (job.state(1740).state, job.state(1741).state) == ("starting", "stalled")

    def test_where_no_rank_ever_wrote_a_line(self) -> None:
        run = Job().state(1801, started=0.0)
        assert (run.state, run.stalled_for_s) == ("stalled", 1801)

    def test_where_the_first_step_compiled_for_long(self) -> None:
        job = Job(step_s=200).start().steps(1)
        assert job.state(500).state == "running"
        assert job.state(601).state == "stalled"


class TestPhases:
    @pytest.mark.parametrize(
        ("phase", "limit_s"),
        [
            ("checkpoint_save", 600),
            ("checkpoint_load", 600),
            ("evaluation", 1800),
            ("compile", 1800),
            ("data", 90),
            ("forward", 90),
            ("shutdown", 90),
        ],
    )
    def test_each_has_its_limit(self, phase: str, limit_s: float) -> None:
        job = Job().start().steps(10)
        job.event("phase_start", phase=phase)
        run = job.state(limit_s)
        assert (run.state, run.stall_threshold_s) == ("running", limit_s)
        assert job.state(limit_s + 1).state == "stalled"

    def test_all_wait_for_one_rank_that_saves(self) -> None:
        job = Job().start().steps(10)
        job.event("phase_start", [0], phase="checkpoint_save")
        run = job.state(300)
        assert (run.state, run.phase, run.phase_since_t) == ("running", "checkpoint_save", 100)

    def test_a_rank_that_hangs_in_its_loader_raises_nothing(self) -> None:
        job = Job().start().steps(10)
        job.event("phase_start", [0], phase="data")
        assert job.state(91).state == "stalled"

    def test_what_usually_takes_long_may(self) -> None:
        job = Job().start().steps(10)
        for _ in range(5):
            job.event("ckpt_start")
            job.wait(500)
            job.event("ckpt_saved")
            job.steps(10)
        job.event("ckpt_start")
        assert job.state(1499).state == "running"
        assert job.state(1501).state == "stalled"

    def test_the_limit_starts_again_where_a_phase_ended(self) -> None:
        job = Job().start().steps(10)
        job.event("eval_start")
        job.wait(1000)
        job.event("eval_end")
        assert job.state(90).state == "running"
        assert job.state(91).state == "stalled"

    def test_a_checkpoint_may_follow_an_evaluation(self) -> None:
        job = Job().start().steps(10)
        job.event("eval_start")
        job.wait(1000)
        job.event("eval_end")
        job.event("phase_start", phase="checkpoint_save")
        assert job.state(600).state == "running"
        assert job.state(601).state == "stalled"

    def test_a_phase_whose_end_was_lost_is_over_with_the_next_step(self) -> None:
        job = Job().start().steps(10)
        job.event("phase_start", phase="evaluation")
        run = job.steps(1).state(91)
        assert (run.state, run.phase) == ("stalled", None)

    def test_an_asynchronous_save_does_not_raise_the_limit_once_steps_go_on(self) -> None:
        job = Job().start().steps(10)
        job.event("ckpt_start", step=10)
        run = job.steps(1).state(91)
        assert run.state == "stalled"
        assert run.checkpoints.open_since_t == 100

    def test_the_phase_of_a_rank_that_fell_silent_long_ago_raises_nothing(self) -> None:
        job = Job().start().steps(10)
        job.event("phase_start", [3], phase="evaluation")
        assert job.steps(20, ranks=[0, 1, 2]).state(91).state == "stalled"

    def test_it_is_the_innermost_one_that_a_rank_shows(self) -> None:
        job = Job().start().steps(10)
        job.event("phase_start", phase="evaluation")
        job.event("phase_start", phase="forward")
        rank = job.state().ranks[0]
        assert (rank.phase, rank.phase_since_t) == ("forward", 100)


class TestNumericFault:
    def test_one_step_on_one_rank_is_enough(self) -> None:
        job = Job().start().steps(10)
        job.facts.append(Step(110, 11, 2, values={"loss": NAN}))
        run = job.steps(5).state()
        assert run.state == "numeric_fault"
        assert run.since_t == 110
        rank = run.ranks[2]
        assert (rank.nonfinite_total, rank.nonfinite_step, rank.nonfinite_t) == (1, 11, 110)

    @pytest.mark.parametrize(("healthy", "state"), [(99, "numeric_fault"), (100, "running")])
    def test_until_a_hundred_finite_steps(self, healthy: int, state: str) -> None:
        assert Job().start().steps(10).steps(1, loss=math.inf).steps(healthy).state().state == state

    def test_until_a_restart(self) -> None:
        assert Job().start().steps(10).steps(1, loss=NAN).restart(5).steps(10).state().state == "running"

    def test_a_loss_that_vanished_beside_a_gradient_norm_that_is_no_number(self) -> None:
        assert Job().start().steps(10).steps(1, grad_norm=NAN).state().state == "numeric_fault"

    def test_a_rank_that_never_had_a_loss_may_have_such_a_gradient_norm(self) -> None:
        assert Job().start().steps(10, grad_norm=NAN).state().state == "running"

    def test_an_overflow_with_a_finite_loss_is_the_scalers_business(self) -> None:
        assert Job().start().steps(10, loss=1.0, grad_norm=math.inf).state().state == "running"


class TestAttempts:
    def test_each_says_how_far_it_came(self) -> None:
        run = Job().start().steps(30).wait(60).restart(20).steps(5).state()
        first, second = run.attempts
        assert (first.number, first.started_t, first.first_step, first.last_step) == (0, 0, 1, 30)
        assert (second.number, second.started_t, second.first_step, second.last_step) == (1, 360, 21, 25)

    def test_the_higher_one_wins_whatever_comes_after_it(self) -> None:
        job = Job().start().steps(30).restart(20).steps(5)
        job.facts += [Step(5000.0, 31, rank, attempt=0) for rank in job.ranks]
        run = job.state()
        assert (run.attempt, run.step, run.last_step_t) == (1, 25, 350)
        assert run.attempts[0].last_step == 31

    def test_one_rank_is_enough_to_begin_one(self) -> None:
        job = Job().start().steps(30)
        job.attempt = 1
        job.event("run_start", [2])
        run = job.state()
        assert (run.state, list(run.ranks)) == ("restarting", [2])

    def test_restarting_until_the_first_step(self) -> None:
        job = Job().start().steps(30).restart(20)
        assert job.state(1800).state == "restarting"
        assert job.steps(1).state().state == "recovering"

    def test_recovering_until_the_step_once_reached_is_passed(self) -> None:
        job = Job().start().steps(30).restart(20)
        assert job.steps(10).state().state == "recovering"
        assert job.steps(1).state().state == "running"

    def test_a_death_alone_is_no_restart(self) -> None:
        job = Job().start().steps(30)
        job.event("exception", [1], type="RuntimeError", message="CUDA error")
        run = job.state(91)
        assert run.state == "stalled"
        assert run.ranks[1].exception == "RuntimeError: CUDA error"

    def test_a_stall_soon_after_a_restart_is_escalated(self) -> None:
        job = Job().start().steps(30).restart(20)
        assert job.steps(20).state(91).state == "escalated"
        assert job.steps(200).state(91).state == "stalled"

    def test_so_is_a_restart_that_never_makes_a_step(self) -> None:
        assert Job().start().steps(30).restart(20).state(1801).state == "escalated"

    def test_a_world_that_shrank(self) -> None:
        job = Job(ranks=8).start().steps(30)
        job.ranks = range(4)
        run = job.restart(20).steps(20).state()
        assert (run.world_size, len(run.ranks), run.state) == (4, 4, "running")


class TestStopped:
    def test_no_process_left(self) -> None:
        job = Job().start(pid=7).steps(30)
        job.event("process_gone", pid=7)
        assert job.state().state == "stopped"

    def test_all_raised(self) -> None:
        job = Job().start().steps(30)
        job.event("exception", type="OSError", message="no space")
        job.event("run_end")
        assert job.state().state == "stopped"

    def test_an_exception_on_a_side_thread_ends_nobody(self) -> None:
        job = Job().start().steps(30)
        job.event("exception", type="OSError", message="disk", thread="uploader", fatal=False)
        run = job.state()
        assert run.state == "running"
        assert run.ranks[0].exception is None

    def test_a_request_for_a_dump_ends_nobody_and_a_termination_does(self) -> None:
        job = Job().start().steps(30)
        job.event("signal", number=10)
        assert job.state().state == "running"
        job.event("signal", number=15)
        assert job.state().state == "stopped"

    def test_one_left_is_a_stall(self) -> None:
        job = Job().start(pid=7).steps(30)
        job.event("process_gone", [1, 2, 3], pid=7)
        assert job.state().state == "running"
        assert job.state(91).state == "stalled"

    def test_a_process_that_goes_on_was_not_gone(self) -> None:
        job = Job().start(pid=7).steps(30)
        job.event("process_gone", pid=7)
        run = job.steps(1).state()
        assert run.state == "running"
        assert run.ranks[0].gone_t is None

    def test_a_line_from_before_its_death_does_not_bring_it_back(self) -> None:
        job = Job().start(pid=7).steps(30).wait(30)
        job.event("process_gone", [1], pid=7)
        job.facts.append(Step(311, 31, 1))
        assert job.state().ranks[1].gone_t == 330

    def test_the_death_of_the_last_attempts_process_is_not_this_ones(self) -> None:
        job = Job().start(pid=7).steps(30).restart(20)
        job.facts += [Event(job.t, "process_gone", rank, attempt=0, details={"pid": 7}) for rank in job.ranks]
        assert job.state().state == "restarting"

    def test_after_three_restarts_that_did_not_get_further(self) -> None:
        job = Job().start().steps(30)
        states = []
        for _ in range(4):
            states.append(job.restart(20).steps(10).state().state)
        assert states == ["recovering", "recovering", "recovering", "stopped"]
        assert job.steps(1).state().state == "running"

    def test_after_three_restarts_before_any_step(self) -> None:
        job = Job().start()
        assert [job.restart(0).state().state for _ in range(4)] == ["restarting"] * 3 + ["stopped"]

    def test_attempts_that_wrote_nothing_count(self) -> None:
        job = Job().start().steps(30)
        job.attempt = 3
        assert job.restart(20).state().state == "stopped"

    def test_a_restart_in_between_that_got_further_starts_the_count_anew(self) -> None:
        job = Job().start().steps(30)
        for _ in range(5):
            assert job.restart(job.step - 10).steps(10).state().state == "recovering"
            assert job.restart(job.step - 10).steps(20).state().state == "running"


class TestFinished:
    def test_every_rank_said_so(self) -> None:
        job = Job().start().steps(30)
        job.event("run_end")
        run = job.state(10_000)
        assert (run.state, run.finished, run.since_t) == ("finished", True, 300)

    def test_most_did_and_the_others_are_gone(self) -> None:
        job = Job().start(pid=7).steps(30)
        job.event("run_end", [0, 1, 2])
        assert job.state(91).state == "stalled"
        job.event("process_gone", [3], pid=7)
        assert job.state(91).state == "finished"

    def test_not_where_one_raised(self) -> None:
        job = Job().start(pid=7).steps(30)
        job.event("run_end", [0, 1, 2])
        job.event("exception", [3], type="OSError", message="disk")
        job.event("run_end", [3])
        assert job.state(91).state == "stalled"

    def test_not_where_a_rank_was_never_heard(self) -> None:
        job = Job().start().steps(30)
        job.event("run_end", [0, 1])
        job.facts = [fact for fact in job.facts if fact.rank in (0, 1)]
        assert job.state(91).state == "stalled"


class TestCheckpoints:
    def test_a_save_that_all_ranks_report_counts_once(self) -> None:
        job = Job().start()
        for _ in range(3):
            job.steps(10)
            job.event("ckpt_start", step=job.step)
            job.wait(5)
            job.event("ckpt_saved", step=job.step, duration_s=5.0)
        saves = job.state().checkpoints
        assert (saves.saved_step, saves.saved_t, saves.durations_s) == (30, (105, 210, 315), (5.0, 5.0, 5.0))
        assert saves.open_since_t is None

    def test_a_failure_says_when_where_and_why(self) -> None:
        job = Job().start().steps(10)
        job.event("ckpt_start", step=10)
        job.event("ckpt_failed", step=10, error="No space left on device")
        (failed,) = job.state().checkpoints.failed
        assert (failed.t, failed.step, failed.error) == (100, 10, "No space left on device")

    def test_a_save_that_failed_on_one_rank_is_none(self) -> None:
        job = Job().start().steps(10)
        job.event("ckpt_saved", [0, 1, 2], step=10)
        job.event("ckpt_failed", [3], step=10, error="disk")
        assert job.state().checkpoints.saved_step is None

    def test_one_that_was_under_way_when_the_job_died_is_not_open_for_ever(self) -> None:
        job = Job().start().steps(10)
        job.event("ckpt_start", step=10)
        assert job.restart(0).steps(5).state().checkpoints.open_since_t is None


def test_nothing_known() -> None:
    run = Job().state(5)
    assert (run.state, run.step, run.attempts, run.ranks, run.stalled_for_s) == ("starting", None, (), {}, 0)


def test_a_fault_told_by_somebody_else_marks_its_rank() -> None:
    job = Job().start().steps(10)
    job.facts.append(Fault(100.0, "oom", rank=2, details={"message": "CUDA out of memory"}))
    job.facts.append(Fault(100.0, "xid", rank=None))
    assert job.state().ranks[2].exception == "oom: CUDA out of memory"


def test_identity_comes_from_run_start() -> None:
    rank = Job().start(gpu=3, uuid="GPU-1", pid=77).state().ranks[1]
    assert (rank.host, rank.gpu, rank.uuid, rank.pid) == ("n0", 3, "GPU-1", 77)


def test_odd_details_are_no_trouble() -> None:
    job = Job()
    job.event("run_start", world_size="many", gpu=True, uuid=5, pid="x")
    job.event("phase_start", phase=["odd"])
    job.event("phase_end")
    job.event("signal", number="TERM")
    job.event("exception")
    job.event("ckpt_saved", duration_s="long")
    job.event("ckpt_saved", duration_s=1e308)
    job.event("ckpt_saved", duration_s="NaN")
    run = job.state()
    assert run.world_size is None
    assert run.checkpoints.durations_s == ()
    assert run.ranks[0].exception == "exception"
