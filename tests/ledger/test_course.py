"""Which time was progress, and at which data the run stood, whichever rank is read first."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from train_ledger.config import Alerts, Config
from train_ledger.facts import Event, Fact, Step
from train_ledger.ledger import Fold
from train_ledger.ledger.memo import from_plain, put_down, take_up, to_plain
from train_ledger.ledger.state import Productive, RunState

T0 = 1_764_000_000.0
DAY_S = 86_400.0


def steps(
    first: int, last: int, t: float, *, every_s: float = 10.0, rank: int = 0, attempt: int = 0, **values: Any
) -> list[Fact]:
    """Steps that follow each other, the first completed at `t`; a value may be a function of the step."""
    return [
        Step(
            t + every_s * (step - first),
            step,
            rank,
            attempt,
            "n1",
            values={name: float(it(step) if callable(it) else it) for name, it in values.items()},
        )
        for step in range(first, last + 1)
    ]


def begins(t: float, *, rank: int = 0, attempt: int = 0) -> Fact:
    return Event(t, "run_start", rank, attempt=attempt, host="n1", details={"world_size": 1})


def event(t: float, name: str, *, rank: int = 0, attempt: int = 0, **details: Any) -> Fact:
    return Event(t, name, rank, attempt=attempt, host="n1", details=details)


def state(facts: list[Fact], t: float, alerts: Alerts | None = None) -> RunState:
    fold = Fold("r42", Config(alerts=alerts or Alerts()))
    fold.add_all(facts)
    return fold.state(t)


def productive(facts: list[Fact], t: float, alerts: Alerts | None = None) -> Productive:
    found = state(facts, t, alerts).productive
    assert found is not None
    return found


def test_of_a_run_that_nobody_heard_of_nothing_is_known() -> None:
    assert state([], T0).productive is None


def test_all_time_of_a_run_that_goes_on_evenly_is_productive_but_its_start() -> None:
    facts = [begins(T0), *steps(1, 360, T0 + 100)]
    found = productive(facts, T0 + 3690)
    assert found.since_t == T0
    assert found.total_s == pytest.approx(3600), "360 steps of 10 s"
    assert found.fraction == pytest.approx(3600 / 3690, abs=1e-4)


def test_before_the_first_step_nothing_is_productive() -> None:
    assert productive([begins(T0)], T0 + 600) == Productive(T0, 0.0, 0.0)


def test_what_the_first_steps_take_beyond_a_usual_one_is_lost() -> None:
    facts = [begins(T0), *steps(1, 1, T0 + 300), *steps(2, 2, T0 + 500), *steps(3, 100, T0 + 510)]
    assert productive(facts, T0 + 1500).total_s == pytest.approx(1000), "100 steps of 10 s"


def test_a_stall_is_lost_and_dead_time_is() -> None:
    facts = [begins(T0), *steps(1, 100, T0 + 10), *steps(101, 200, T0 + 1000 + 3600)]
    assert productive(facts, T0 + 5590).total_s == pytest.approx(2000)
    alive = productive(facts, T0 + 5590)
    dead = productive(facts, T0 + 5590 + 20_000)
    assert dead.total_s == alive.total_s
    assert dead.fraction < 0.1 < alive.fraction


def test_slow_steps_are_steps() -> None:
    facts = [begins(T0), *steps(1, 100, T0 + 10), *steps(101, 200, T0 + 1040, every_s=40.0)]
    assert productive(facts, T0 + 5000).total_s == pytest.approx(1000 + 4000)


def test_the_time_that_a_checkpoint_blocks_is_lost_and_so_is_an_evaluation() -> None:
    blocking = [begins(T0), *steps(1, 100, T0 + 10), *steps(101, 101, T0 + 1040, ckpt_s=30.0)]
    assert productive(blocking, T0 + 1040).total_s == pytest.approx(1010)
    evaluated = [
        *[begins(T0), *steps(1, 100, T0 + 10), event(T0 + 1000, "eval_start"), event(T0 + 1060, "eval_end")],
        *steps(101, 101, T0 + 1070),
    ]
    assert productive(evaluated, T0 + 1070).total_s == pytest.approx(1010)


def test_what_is_done_once_more_after_a_restart_is_lost() -> None:
    facts = [
        *[begins(T0), *steps(1, 100, T0 + 10)],
        *[begins(T0 + 1300, attempt=1), *steps(61, 160, T0 + 1510, attempt=1)],
    ]
    assert productive(facts, T0 + 2500).total_s == pytest.approx(1600), "160 different steps"
    behind = [fact for fact in facts if not isinstance(fact, Step) or fact.attempt == 0 or fact.step <= 90]
    assert productive(behind, T0 + 2500).total_s == pytest.approx(1000)


def test_a_step_that_goes_back_without_a_new_attempt_is_a_restart_too() -> None:
    facts = [begins(T0), *steps(1, 100, T0 + 10), *steps(61, 160, T0 + 1510)]
    assert productive(facts, T0 + 2500).total_s == pytest.approx(1600)


def test_only_the_window_counts() -> None:
    alerts = Alerts(effective_window_s=3600.0)
    facts = [begins(T0), *steps(1, 3000, T0 + 10), *steps(3001, 3100, T0 + 33_000)]
    assert productive(facts, T0 + 30_000, alerts).fraction == pytest.approx(1.0, abs=0.001)
    assert productive(facts, T0 + 34_000, alerts).fraction == pytest.approx(1000 / 3600, abs=0.01)


def test_a_run_that_ended_and_is_taken_up_days_later_begins_anew() -> None:
    ended = [begins(T0), *steps(1, 100, T0 + 10), event(T0 + 1000, "run_end")]
    again = [begins(T0 + 3 * DAY_S, attempt=1), *steps(101, 200, T0 + 3 * DAY_S + 10, attempt=1)]
    found = productive([*ended, *again], T0 + 3 * DAY_S + 1000)
    assert found.since_t == T0 + 3 * DAY_S
    assert found.fraction == pytest.approx(1.0, abs=0.02)
    crashed = [fact for fact in ended if not isinstance(fact, Event) or fact.name != "run_end"]
    assert productive([*crashed, *again], T0 + 3 * DAY_S + 1000).fraction < 0.05


def test_a_rank_that_is_numbered_anew_at_a_restart_does_not_begin_at_nothing() -> None:
    facts = [
        *[begins(T0, rank=8), *steps(1, 100, T0 + 10, rank=8)],
        *[begins(T0 + 1300, rank=3, attempt=1), *steps(61, 160, T0 + 1510, rank=3, attempt=1)],
    ]
    assert productive(facts, T0 + 2500).total_s == pytest.approx(1600)


def job(samples: bool = True) -> Iterator[list[Fact]]:
    """Two attempts of three ranks, one list a rank; the second attempt goes on at wrong data."""
    for rank in range(3):
        position = {"consumed_samples": lambda step: 512 * step} if samples else {}
        wrong = {"consumed_samples": lambda step: 512 * (step - 40)} if samples else {}
        yield [
            *[begins(T0 + rank, rank=rank), *steps(1, 100, T0 + 10 + rank, rank=rank, **position)],
            *[begins(T0 + 1300, rank=rank, attempt=1)],
            *steps(61, 160, T0 + 1510 + rank, rank=rank, attempt=1, **wrong),
        ]


def test_in_which_order_ranks_are_read_makes_no_difference() -> None:
    ranks = list(job())
    one = state([fact for rank in ranks for fact in rank], T0 + 2600)
    other = state([fact for rank in reversed(ranks) for fact in rank], T0 + 2600)
    mixed, source = [], [list(reversed(rank)) for rank in ranks]
    rng = random.Random(7)
    while left := [facts for facts in source if facts]:
        mixed.append(rng.choice(left).pop())
    assert one.data_regress_total == 1
    assert one == other == state(mixed, T0 + 2600)


# -- data


def positions(*attempts: list[Fact]) -> RunState:
    facts = [
        fact
        for number, own in enumerate(attempts)
        for fact in (begins(T0 + 2000 * number, attempt=number), *own)
    ]
    return state(facts, T0 + 100_000)


def samples(first: int, last: int, attempt: int, at: Any, **others: Any) -> list[Fact]:
    return steps(first, last, T0 + 2000 * attempt + 10, attempt=attempt, consumed_samples=at, **others)


def test_data_that_go_on_where_they_were_are_fine() -> None:
    found = positions(
        samples(1, 100, 0, lambda step: 512 * step), samples(61, 160, 1, lambda step: 512 * step)
    )
    assert (found.data_regress_total, found.data_regresses) == (0, ())


def test_data_that_begin_anew_at_a_restart() -> None:
    found = positions(
        samples(1, 100, 0, lambda step: 512 * step), samples(61, 160, 1, lambda step: 512 * (step - 60))
    )
    (regress,) = found.data_regresses
    assert (regress.attempt, regress.step, regress.position, regress.was) == (1, 61, 512, 512 * 61)
    assert regress.t == T0 + 2010
    assert found.data_regress_total == 1


def test_data_that_begin_anew_behind_the_last_step_that_was_seen() -> None:
    found = positions(
        samples(1, 100, 0, lambda step: 512 * step), samples(101, 160, 1, lambda step: 512 * (step - 100))
    )
    assert [it.step for it in found.data_regresses] == [101]
    fine = positions(
        samples(1, 100, 0, lambda step: 512 * step), samples(101, 160, 1, lambda step: 512 * step)
    )
    assert fine.data_regress_total == 0


def test_one_batch_too_few_is_other_data() -> None:
    found = positions(
        samples(1, 100, 0, lambda step: 512 * step), samples(61, 90, 1, lambda step: 512 * (step - 1))
    )
    assert [(it.position, it.was) for it in found.data_regresses] == [(512 * 60, 512 * 61)]


def test_a_job_of_another_size_goes_on_with_another_batch() -> None:
    smaller = lambda step: 512 * 60 + 448 * (step - 60)  # noqa: E731
    found = positions(samples(1, 100, 0, lambda step: 512 * step), samples(61, 160, 1, smaller))
    assert found.data_regress_total == 0
    anew = positions(
        samples(1, 100, 0, lambda step: 512 * step), samples(61, 160, 1, lambda step: 448 * (step - 60))
    )
    assert anew.data_regress_total == 1


def test_a_third_attempt_is_held_against_the_second_whose_data_it_goes_on_with() -> None:
    smaller = lambda step: 512 * 60 + 448 * (step - 60)  # noqa: E731
    found = positions(
        samples(1, 100, 0, lambda step: 512 * step), samples(61, 80, 1, smaller), samples(71, 160, 2, smaller)
    )
    assert found.data_regress_total == 0


def test_an_attempt_that_is_right_again_is_held_against_the_last_right_one() -> None:
    right = lambda step: 512 * step  # noqa: E731
    found = positions(
        samples(1, 100, 0, right),
        samples(61, 90, 1, lambda step: 512 * (step - 60)),
        samples(61, 160, 2, right),
    )
    assert [it.attempt for it in found.data_regresses] == [1]


def test_batches_of_varying_size_are_compared_step_by_step() -> None:
    tokens = {0: 0}
    for step in range(1, 201):
        tokens[step] = tokens[step - 1] + 4000 + step * 37 % 101
    same = positions(
        steps(1, 100, T0 + 10, consumed_tokens=tokens.get),
        steps(61, 160, T0 + 2010, attempt=1, consumed_tokens=tokens.get),
    )
    assert same.data_regress_total == 0
    anew = positions(
        steps(1, 100, T0 + 10, consumed_tokens=tokens.get),
        steps(61, 160, T0 + 2010, attempt=1, consumed_tokens=lambda step: tokens[step - 60]),
    )
    assert anew.data_regress_total == 1


def test_lines_that_tell_every_tenth_step_are_compared_where_both_tell() -> None:
    every_tenth = lambda first, attempt, at: [  # noqa: E731
        fact
        for fact in samples(first, 100 + first, attempt, at)
        if isinstance(fact, Step) and fact.step % 10 == 0
    ]
    right = lambda step: 512 * step  # noqa: E731
    assert positions(every_tenth(1, 0, right), every_tenth(61, 1, right)).data_regress_total == 0
    wrong = positions(every_tenth(1, 0, right), every_tenth(61, 1, lambda step: 512 * (step - 60)))
    assert [it.step for it in wrong.data_regresses] == [70]


def test_a_run_that_tells_no_position_is_not_judged_by_it() -> None:
    facts = [fact for rank in job(samples=False) for fact in rank]
    assert state(facts, T0 + 2600).data_regress_total == 0


def test_what_is_known_of_the_course_is_kept_for_another_process() -> None:
    facts = [fact for rank in job() for fact in rank]
    for cut in (50, 150, 330):
        first, second = Fold("r42", Config()), Fold("r42", Config())
        first.add_all(facts[:cut])
        first.state(T0 + 1200)
        take_up(second, from_plain(to_plain(put_down(first))))
        second.add_all(facts[cut:])
        assert second.state(T0 + 2600) == state(facts, T0 + 2600)


def test_a_run_of_months_is_kept_small() -> None:
    fold = Fold("r42", Config())
    for attempt in range(400):
        t = T0 + 6000.0 * attempt
        fold.add(begins(t, attempt=attempt))
        fold.add_all(
            steps(
                10 * attempt + 1, 10 * attempt + 12, t + 10, attempt=attempt, consumed_tokens=lambda s: s * s
            )
        )
    found = fold.state(T0 + 6000.0 * 400)
    assert found.productive is not None
    assert found.productive.fraction < 0.05
    assert found.data_regress_total == 0
    assert len(repr(to_plain(vars(fold)["_ranks"].course))) < 200_000
