"""Clocks that differ, and clocks that jump."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.config import Config
from train_ledger.facts import Event, Fact, Step
from train_ledger.ledger import Fold, RunState

HOSTS = ("a", "a", "b", "b", "c", "c")
STEP_S = 2.0
STEPS = 60


def history(
    ahead_s: Mapping[str, float],
    *,
    jump: tuple[str, int, float] = ("", 0, 0.0),
    timed: bool = False,
    hung: bool = False,
) -> list[Fact]:
    """Six ranks on three hosts that complete 60 steps of 2 s from t = 1000 on.

    `jump` is (host, from which step on, seconds); `timed` writes step_time_s; `hung`: hosts a and c stand
    still half-way, b completes one step more.
    """
    facts: list[Fact] = []
    for rank, host in enumerate(HOSTS):
        facts.append(
            Event(1000 + ahead_s.get(host, 0), "run_start", rank, host=host, details={"world_size": 6})
        )
        last = STEPS if not hung else STEPS // 2 + (host == "b")
        for step in range(1, last + 1):
            t = 1000 + STEP_S * step + 0.01 * rank + ahead_s.get(host, 0)
            if host == jump[0] and step >= jump[1]:
                t += jump[2]
            facts.append(
                Step(t, step, rank, host=host, values={"step_time_s": STEP_S} if timed else {"loss": 1.0})
            )
    return facts


def state(facts: list[Fact], t: float) -> RunState:
    fold = Fold("r", Config())
    fold.add_all(facts)
    return fold.state(t)


END = 1000 + STEP_S * STEPS


@pytest.mark.parametrize("ahead_s", [{}, {"b": 600.0}, {"b": -200.0}, {"b": 600.0, "c": -200.0}])
def test_times_are_those_of_rank_0s_host(ahead_s: dict[str, float]) -> None:
    run = state(history(ahead_s), END + 5)
    assert run.state == "running"
    assert run.stalled_for_s == pytest.approx(5, abs=0.1)
    assert all(abs((rank.step_t or 0) - END) < 0.1 for rank in run.ranks.values())
    assert run.attempts[0].started_t == 1000


def test_a_node_ten_minutes_fast_hides_no_hang() -> None:
    assert state(history({"b": 600.0, "c": 600.0}, hung=True), 1000 + STEPS + 100).state == "stalled"


def test_a_node_that_is_slow_pages_nobody() -> None:
    assert state(history({"b": -200.0, "c": -200.0}), END + 1).state == "running"


def test_a_hang_in_which_only_some_completed_the_last_step_is_no_skew() -> None:
    run = state(history({}, hung=True), 2000)
    assert run.ranks[2].step_t == pytest.approx(1000 + STEPS + STEP_S, abs=0.1)


def test_rank_0s_own_clock_is_the_one_that_counts() -> None:
    run = state(history({"a": 600.0}), END + 600 + 5)
    assert run.stalled_for_s == pytest.approx(5, abs=0.1)


class TestJumps:
    @pytest.mark.parametrize("host", ["a", "b"])
    @pytest.mark.parametrize("seconds", [-300.0, -30.0])
    def test_back(self, host: str, seconds: float) -> None:
        run = state(history({}, jump=(host, 30, seconds)), END + 5)
        assert run.stalled_for_s == pytest.approx(5, abs=STEP_S + 0.1)
        assert run.p50_step_time_s == pytest.approx(STEP_S, abs=0.1)

    @pytest.mark.parametrize("host", ["a", "b"])
    @pytest.mark.parametrize("seconds", [-300.0, 300.0, -7.0, 7.0])
    def test_where_the_writer_measures_its_steps(self, host: str, seconds: float) -> None:
        run = state(history({}, jump=(host, 30, seconds), timed=True), END + 5)
        assert run.stalled_for_s == pytest.approx(5, abs=0.1)
        assert run.state == "running"

    def test_forward_on_one_host_is_learned_from_the_others(self) -> None:
        run = state(history({}, jump=("b", 30, 600.0)), END + 5)
        assert run.stalled_for_s == pytest.approx(5, abs=0.1)

    def test_forward_on_all_hosts_is_a_pause_where_steps_are_not_measured_from_step_to_step(self) -> None:
        """A loop of one's own (no run_start) that leaves checkpoints out of its step time."""
        facts: list[Fact] = []
        t = 0.0
        for step in range(1, 100):
            t += STEP_S + (300 if step % 20 == 0 else 0)
            facts.append(Step(t, step, 0, values={"step_time_s": STEP_S}))
        assert state(facts, t).stalled_for_s == 0

    def test_a_checkpoint_left_out_of_the_step_time_is_no_jump(self) -> None:
        facts: list[Fact] = [Event(0.0, "run_start", 0)]
        t = 0.0
        for step in range(1, 50):
            if step % 10 == 0:
                facts.append(Event(t, "phase_start", 0, details={"phase": "checkpoint_save"}))
                t += 60
                facts.append(Event(t, "phase_end", 0, details={"phase": "checkpoint_save"}))
            t += STEP_S
            facts.append(Step(t, step, 0, values={"step_time_s": STEP_S}))
        assert state(facts, t).stalled_for_s == 0

    def test_the_carried_clock_lasts_into_the_next_attempt_on_the_same_host(self) -> None:
        facts = history({}, jump=("a", 30, -300.0), timed=True)
        back = END - 300 + 10
        for rank, host in enumerate(HOSTS):
            t = back if host == "a" else back + 300
            facts.append(Event(t, "run_start", rank, attempt=1, host=host, details={}))
        assert state(facts, END + 10).attempts[1].started_t == pytest.approx(END + 10, abs=0.1)

    @pytest.mark.parametrize("seconds", [-300.0, 3600.0])
    def test_a_reading_of_the_clock_that_jumped_can_be_carried_too(self, seconds: float) -> None:
        fold = Fold("r", Config())
        fold.add_all(history({}, jump=("a", 30, seconds), timed=True))
        reading = END + seconds + 5
        assert fold.state(fold.carried(reading)).stalled_for_s == pytest.approx(5, abs=0.1)
        assert fold.heard_t == pytest.approx(END, abs=0.1)

    def test_a_phase_that_is_written_late_with_the_time_of_its_begin_is_no_jump(self) -> None:
        facts = history({}, timed=True)
        facts.append(Event(END + 40, "warning", 0, host="a"))
        facts.append(Event(END + 10, "phase_start", 0, host="a", details={"phase": "data"}))
        run = state(facts, END + 50)
        assert run.ranks[0].phase_since_t == pytest.approx(END + 10)
        assert run.ranks[0].heard_t == pytest.approx(END + 40)

    def test_an_event_right_after_a_jump_back(self) -> None:
        facts = history({}, timed=True)
        facts.append(Event(END - 500, "phase_start", 0, host="a", details={"phase": "evaluation"}))
        run = state(facts, END + 5)
        assert run.ranks[0].phase_since_t == pytest.approx(END, abs=0.1)


@settings(deadline=None)
@given(
    ahead_s=st.floats(-5000, 5000),
    host=st.sampled_from(["b", "c"]),
    hung=st.booleans(),
    after_s=st.floats(0, 500),
)
def test_a_constant_offset_of_a_host_changes_nothing(
    ahead_s: float, host: str, hung: bool, after_s: float
) -> None:
    right = state(history({}, hung=hung), END + after_s)
    skewed = state(history({host: ahead_s}, hung=hung), END + after_s)
    assert skewed.stalled_for_s == pytest.approx(right.stalled_for_s, abs=0.06)
    assert skewed.step == right.step
    assert skewed.stall_threshold_s == pytest.approx(right.stall_threshold_s, abs=1e-3)


@pytest.mark.parametrize("told", [1e308, 1e9, 86_400.0])
def test_a_timer_that_tells_what_no_step_takes_moves_no_clock(told: float) -> None:
    fold = Fold("r42", Config())
    fold.add(Event(1000.0, "run_start", 0, host="n1"))
    for number in range(1, 9):
        step_time_s = told if number == 5 else 1.0
        fold.add(Step(1000.0 + number, number, 0, values={"step_time_s": step_time_s}))
    state = fold.state(1010.0)
    assert (state.last_step_t, state.p50_step_time_s) == (1008.0, 1.0)


@pytest.mark.parametrize("wrong", [Step(0.0, 5, 0), Event(1.0, "ckpt_saved", 0, 5)])
def test_a_single_line_with_a_time_that_is_none_moves_no_clock(wrong: Fact) -> None:
    """As of a writer that once said "t": 0; a clock that was set back stays so."""
    fold = Fold("r42", Config())
    for number in (*range(1, 5), *range(6, 10)):
        fold.add(Step(1.7e9 + number, number, 0))
        if number == 4:
            fold.add(wrong)
    assert fold.state(1.7e9 + 10).last_step_t == 1.7e9 + 9
    assert fold.carried(0.0) == 0.0


def test_a_clock_that_was_set_back_for_good_is_carried_on() -> None:
    fold = Fold("r42", Config())
    for number in range(1, 10):
        fold.add(Step(1.7e9 + number - (7200.0 if number >= 5 else 0.0), number, 0))
    state = fold.state(1.7e9 + 10)
    assert 1.7e9 + 7 < (state.last_step_t or 0.0) < 1.7e9 + 10
    assert 7190.0 < fold.carried(0.0) < 7201.0
