"""However a run goes: its states follow from what is known, and every move between them is in the table."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from train_ledger.config import Alerts, Config
from train_ledger.facts import Event, Fault, Step
from train_ledger.ledger import Fold
from train_ledger.ledger.transitions import move_between

_RANKS = range(2)
_ALERTS = Alerts()
_HEALTHY_STEPS = 100
_T0 = 1_764_000_000.0


class Run(RuleBasedStateMachine):
    """A job of two ranks on one node that steps, saves, dies, is restarted, stands still and ends."""

    @initialize()
    def begin(self) -> None:
        self.t = _T0
        self.step = self.saved = self.reached = self.reached_before = 0
        self.attempt, self.in_vain = -1, 0
        self.productive_s, self.productive_since_t = 0.0, 0.0
        self.fold = Fold("r42", Config(), {"world_size": 2, "started": _T0})
        self.state = self.fold.state(self.t)
        self.start()
        self.look()

    def start(self) -> None:
        if self.attempt > 0 and self.step <= self.reached_before:
            self.in_vain += 1
        elif self.attempt >= 0:
            self.in_vain = 0
        self.attempt += 1
        self.ended = self.stepped = self.is_told_of_xid = False
        self.dead: set[int] = set()
        self.bad_step: int | None = None
        self.step, self.since_t, self.reached_before = self.saved, self.t, self.reached
        for rank in _RANKS:
            place = {"gpu": rank, "uuid": f"GPU-{rank}", "pci": f"0000:{rank + 16:02x}:00.0", "pid": 0}
            self.tell("run_start", rank, {"world_size": 2, **place})

    def tell(self, name: str, rank: int, details: dict[str, Any] | None = None) -> None:
        self.fold.add(Event(self.t, name, rank, self.step, self.attempt, "node1", details=details or {}))

    def look(self) -> None:
        """What is known now, as a keeper looks after each thing that happens."""
        self.before, self.state = self.state.state, self.fold.state(self.fold.carried(self.t))

    @property
    def lives(self) -> bool:
        return not self.dead and not self.ended

    @precondition(lambda self: self.lives)
    @rule(steps=st.sampled_from([1, 1, 5, 120]), loss=st.sampled_from([2.0, 2.0, 2.0, math.nan]))
    def train(self, steps: int, loss: float) -> None:
        for number in range(steps):
            self.t += 1.0
            self.step += 1
            told = {"loss": loss if number == 0 else 2.0, "step_time_s": self.t - self.since_t}
            self.since_t = self.t
            if math.isnan(told["loss"]):
                self.bad_step = self.step
            for rank in _RANKS:
                self.fold.add(Step(self.t, self.step, rank, self.attempt, "node1", values=told))
        self.stepped = True
        if self.step > self.reached_before:
            self.in_vain = 0
        self.reached = max(self.reached, self.step)
        self.look()

    @precondition(lambda self: self.lives and self.step)
    @rule()
    def save(self) -> None:
        self.saved = self.step
        self.tell("ckpt_saved", 0, {"duration_s": 1.0})
        self.look()

    @precondition(lambda self: self.lives)
    @rule(phase=st.sampled_from(["evaluation", "checkpoint_save", "compile"]), is_start=st.booleans())
    def enter_or_leave(self, phase: str, is_start: bool) -> None:
        for rank in _RANKS:
            self.tell("phase_start" if is_start else "phase_end", rank, {"phase": phase})
        self.look()

    @rule(seconds=st.sampled_from([30.0, 100.0, 700.0, 2000.0]))
    def stand_still(self, seconds: float) -> None:
        self.t += seconds
        self.look()

    @precondition(lambda self: self.lives)
    @rule(ranks=st.sampled_from([(0,), (1,), (0, 1)]), how=st.sampled_from(["process_gone", "exception"]))
    def die(self, ranks: tuple[int, ...], how: str) -> None:
        for rank in ranks:
            self.tell(how, rank, {"type": "RuntimeError"} if how == "exception" else {"pid": 0})
        self.dead |= set(ranks)
        self.look()

    @rule()
    def restart(self) -> None:
        """The launcher does, or somebody."""
        self.t += 5.0
        self.start()
        self.look()

    @rule(rank=st.sampled_from(_RANKS))
    def report_xid(self, rank: int) -> None:
        details = {"code": 79, "pci": f"0000:{rank + 16:02x}:00", "text": "fallen off the bus"}
        self.is_told_of_xid = True
        self.fold.add_hardware(Fault(self.t, "xid", host="node1", details=details))
        self.look()

    @precondition(lambda self: self.lives)
    @rule()
    def end(self) -> None:
        self.ended = True
        for rank in _RANKS:
            self.tell("run_end", rank)
        self.look()

    # -- what holds at each look

    @invariant()
    def it_is_a_move_of_the_table(self) -> None:
        if self.state.state != self.before:
            assert move_between(self.before, self.state.state) is not None, (self.before, self.state.state)

    @invariant()
    def finished_is_said_by_all_ranks(self) -> None:
        assert self.state.finished == (self.state.state == "finished")
        assert self.ended or not self.state.finished

    @invariant()
    def what_stands_has_stood_for_longer_than_its_limit(self) -> None:
        if self.state.state in ("stalled", "escalated"):
            assert self.state.stalled_for_s > self.state.stall_threshold_s

    @invariant()
    def an_escalation_is_a_stall_soon_after_a_restart(self) -> None:
        if self.state.state == "escalated":
            began_t = self.state.attempts[-1].started_t
            stood_since_t = self.state.last_step_t or began_t
            assert self.state.attempt > 0
            assert stood_since_t - began_t <= _ALERTS.restart_loop_window_s

    @invariant()
    def a_run_stops_without_processes_or_after_restarts_in_vain(self) -> None:
        if self.state.state == "stopped":
            assert self.dead == {*_RANKS} or self.in_vain >= _ALERTS.restart_loop_count
        elif self.in_vain >= _ALERTS.restart_loop_count:
            assert self.state.state == "finished"

    @invariant()
    def a_run_recovers_until_it_has_passed_the_step_once_reached(self) -> None:
        has_passed = self.attempt == 0 or self.step > self.reached_before
        if self.state.state == "recovering":
            assert self.stepped
            assert not has_passed
        if self.state.state == "running":
            assert has_passed

    @invariant()
    def before_a_step_it_starts_or_restarts(self) -> None:
        if self.state.state in ("starting", "restarting"):
            assert not self.stepped
            assert (self.state.state == "restarting") == (self.attempt > 0)

    @invariant()
    def a_bad_loss_holds_until_100_good_ones_or_a_restart(self) -> None:
        is_bad = self.bad_step is not None and self.step - self.bad_step < _HEALTHY_STEPS
        assert (self.state.state != "numeric_fault") or is_bad
        if is_bad and self.state.stalled_for_s <= self.state.stall_threshold_s:
            assert self.state.state in ("numeric_fault", "stopped", "finished")

    @invariant()
    def a_failed_gpu_shows_where_steps_go_on(self) -> None:
        if self.state.state == "hardware_fault":
            assert self.is_told_of_xid
            assert self.stepped

    @invariant()
    def what_was_productive_stays_so(self) -> None:
        productive = self.state.productive
        if productive is not None:
            if productive.since_t == self.productive_since_t:
                assert productive.total_s >= self.productive_s - 1e-6
            assert productive.fraction <= 1
            self.productive_since_t, self.productive_s = productive.since_t, productive.total_s


TestRunStates = Run.TestCase
TestRunStates.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
