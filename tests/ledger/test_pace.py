"""How long steps take: by their own timer, else from one to the next, and told at once as one by one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.facts import Step
from train_ledger.ledger.pace import Pace
from train_ledger.sources.signal_lines.plain import PlainLine

_OPTIONAL_S = st.sampled_from([None, 0.0, 1.0, 2.5, -1.0])


@st.composite
def lines(draw: st.DrawFn) -> list[PlainLine]:
    often = draw(st.sampled_from([_OPTIONAL_S, st.sampled_from([1.0, 1.5, 9.0])]))
    saves = draw(st.sampled_from([_OPTIONAL_S, st.none()]))
    t, step, found = 100.0, 7, []
    for _ in range(draw(st.integers(2, 60))):
        t += draw(st.sampled_from([0.0, 1.0, 3.0, 700.0]))
        step += draw(st.sampled_from([1, 1, 5]))
        found.append(PlainLine(t, step, step_time_s=draw(often), ckpt_s=draw(saves)))
    return found


def one_by_one(pace: Pace, steps: list[PlainLine]) -> None:
    for before, line in pairwise(steps):
        told = {"step_time_s": line.step_time_s, "ckpt_s": line.ckpt_s}
        values = {name: value for name, value in told.items() if value is not None}
        fact = Step(line.t, line.step, 0, values=values)
        pace.timed(fact, line.t - before.t, line.step - before.step, paused=False)
        pace.completed()


@given(lines(), lines())
def test_at_once_is_as_one_by_one(first: list[PlainLine], then: list[PlainLine]) -> None:
    at_once, single = Pace(), Pace()
    for pace in (at_once, single):
        pace.completed(2)
        one_by_one(pace, first)
    one_by_one(single, then)
    at_once.timed_at_once(then[1:], [line.t for line in then[1:]], then[0].step, then[0].t)
    assert at_once._durations_s == single._durations_s
    assert at_once.steady_step_s == single.steady_step_s


def test_the_first_steps_are_none_to_go_by() -> None:
    pace = Pace()
    pace.completed()
    for took_s in (90.0, 1.0, 1.0):
        pace.timed(Step(0.0, 1, 0), took_s, 1, paused=False)
        pace.completed()
    assert (pace.warm_up_s, pace.steady_step_s) == (90.0, 1.0)
    pace.went_back()
    pace.timed(Step(0.0, 1, 0), 50.0, 1, paused=False)
    assert pace.steady_step_s == 1.0
