"""What is kept of the facts: the same however they are dealt out, and no more than a run needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

import pytest
from hypothesis import given, settings

from ledger.accounts.made import AttemptPlan, Plan, played
from ledger.accounts.test_laws import PLANS
from train_ledger.config import Alerts
from train_ledger.facts import Event, Fact, Step, Stretch
from train_ledger.ledger.accounts import History, accounts_of
from train_ledger.sources.signal_lines.plain import runs

T0 = 1_790_000_000.0


def by_rank(facts: list[Fact]) -> list[Fact]:
    """One rank's file after the other."""
    return sorted(facts, key=lambda it: -1 if it.rank is None else it.rank)


def in_rows(facts: list[Fact]) -> Iterator[Fact | Stretch]:
    """The facts of one rank after the other; steps in a row as the reader hands them over."""
    for (is_step, rank), told in groupby(facts, key=lambda it: (isinstance(it, Step), it.rank)):
        own = list(told)
        if not is_step or rank is None:
            yield from own
            continue
        steps = [it for it in own if isinstance(it, Step)]
        lines = [{"t": it.t, "step": it.step, "attempt": it.attempt, **it.values} for it in steps]
        for run in runs("\n".join(map(json.dumps, lines)).encode(), rank):
            here = steps[run.place : run.place + len(run.lines)]
            yield from here if run.plain is None else [Stretch(run.plain[:-1], here[-1])]


@settings(max_examples=60, deadline=None)
@given(PLANS)
def test_read_rank_by_rank_or_in_stretches_it_is_the_same(plan: Plan) -> None:
    made = played(plan)
    histories = [History("made") for _ in range(3)]
    histories[0].add_all(made.facts)
    histories[1].add_all(by_rank(made.facts))
    for told in in_rows(by_rank(made.facts)):
        if isinstance(told, Stretch):
            histories[2].add_stretch(told)
        else:
            histories[2].add(told)
    first, *others = [accounts_of(it, Alerts(), made.t) for it in histories]
    for other in others:
        assert other.seconds == first.seconds
        assert other.spans == first.spans
        assert other.recoveries == first.recoveries


def test_of_a_thousand_ranks_the_steps_of_a_few_are_kept() -> None:
    history = History("large")
    for rank in range(200):
        history.add(Event(T0, "run_start", rank, details={"world_size": 200}))
        for step in range(1, 101):
            history.add(Step(T0 + step, step, rank))
            if step % 20 == 0:
                history.add(Event(T0 + step, "ckpt_start", rank, step))
                history.add(Event(T0 + step, "ckpt_saved", rank, step, details={"durable": True}))
    kept = sum(len(tape.steps) for it in history.ranks.values() for tape in it.tapes.values())
    assert kept <= 16 * 100 + 184 * 8
    assert len(history.happened) < 16 * 10 + 10
    found = accounts_of(history, Alerts(), T0 + 101)
    assert (found.steps, found.world_size, found.checkpointing.saves) == (100, 200, 5)


def test_a_save_that_fails_on_the_last_of_many_ranks_is_none() -> None:
    history = History("large")
    for rank in range(40):
        for step in range(1, 11):
            history.add(Step(T0 + step, step, rank))
        name = "ckpt_failed" if rank == 39 else "ckpt_saved"
        history.add(Event(T0 + 10.5, name, rank, 10))
    assert accounts_of(history, Alerts(), T0 + 11).checkpointing.saves == 0


@pytest.mark.slow
def test_a_thousand_attempts_are_accounted_for_in_seconds() -> None:
    attempt = AttemptPlan(world_size=2, steps=6, save_every=3)
    made = played(Plan((attempt,) * 1000, 1.0))
    history = History("restless")
    history.add_all(made.facts)
    found = accounts_of(history, Alerts(), made.t)
    assert len(found.interruptions) == 1000
    assert found.seconds["productive"] == pytest.approx(made.truth["productive"], rel=0.02)
