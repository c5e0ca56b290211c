"""What holds for any run: how its facts are dealt out does not matter."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.facts import Event, Fact, Step
from train_ledger.ledger import STATES, Fold
from train_ledger.sources import read_all

_PHASES = st.sampled_from(["compile", "data", "checkpoint_save", "evaluation"])
_VALUES = st.fixed_dictionaries(
    {},
    optional={"loss": st.sampled_from([1.0, math.nan]), "step_time_s": st.sampled_from([1.0, 2.0, math.nan])},
)


@st.composite
def lines_of_a_rank(draw: st.DrawFn, rank: int) -> list[Fact]:
    """Any sensible or senseless sequence of lines that one rank could write."""
    t, step, attempt = 1000.0 + draw(st.floats(-300, 300)), 0, 0
    facts: list[Fact] = []
    for _ in range(draw(st.integers(0, 25))):
        t += draw(st.sampled_from([0.5, 1.0, 2.0, 100.0, -20.0]))
        kind = draw(
            st.sampled_from(["step"] * 6 + ["open", "close", "save", "fail", "restart", "end", "exception"])
        )
        if kind == "step":
            step = max(0, step + draw(st.sampled_from([1, 1, 1, 1, 10, -5])))
            facts.append(Step(t, step, rank, attempt, f"n{rank % 2}", values=draw(_VALUES)))
            continue
        attempt += kind == "restart"
        name, details = _EVENTS[kind]
        facts.append(
            Event(t, name, rank, step, attempt, f"n{rank % 2}", details={**details, "phase": draw(_PHASES)})
        )
    return facts


_EVENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "open": ("phase_start", {}),
    "close": ("phase_end", {}),
    "save": ("ckpt_saved", {"duration_s": 3.0}),
    "fail": ("ckpt_failed", {"error": "disk"}),
    "restart": ("run_start", {"world_size": 3, "pid": 5}),
    "end": ("run_end", {}),
    "exception": ("exception", {"type": "OSError"}),
}

_RANKS = st.tuples(lines_of_a_rank(0), lines_of_a_rank(1), lines_of_a_rank(2))


def dealt(ranks: tuple[list[Fact], ...], order: Iterator[int]) -> list[Fact]:
    """The ranks' lines, each rank's in its own order, in any interleaving."""
    left = [list(lines) for lines in ranks]
    facts = []
    while any(left):
        full = [lines for lines in left if lines]
        facts.append(full[next(order) % len(full)].pop(0))
    return facts


def shape(facts: list[Fact], t: float) -> dict[str, Any]:
    fold = Fold("r", Config())
    fold.add_all(facts)
    return dataclasses.asdict(
        fold.state(t), dict_factory=lambda items: {key: repr(value) for key, value in items}
    )


@settings(deadline=None)
@given(ranks=_RANKS, data=st.data(), after_s=st.sampled_from([0.0, 50.0, 5000.0]))
def test_any_interleaving_gives_the_same_state(
    ranks: tuple[list[Fact], ...], data: st.DataObject, after_s: float
) -> None:
    count = sum(map(len, ranks))
    order = data.draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    one_after_the_other = [fact for lines in ranks for fact in lines]
    t = max((fact.t for fact in one_after_the_other if fact.t is not None), default=0.0) + after_s
    assert shape(dealt(ranks, iter(order)), t) == shape(one_after_the_other, t)


@settings(deadline=None)
@given(ranks=_RANKS, data=st.data())
def test_looking_changes_nothing(ranks: tuple[list[Fact], ...], data: st.DataObject) -> None:
    facts = [fact for lines in ranks for fact in lines]
    looked = Fold("r", Config())
    for fact in facts:
        looked.add(fact)
        if data.draw(st.booleans()):
            looked.state(2000.0)
    unseen = Fold("r", Config())
    unseen.add_all(facts)
    assert repr(looked.state(3000.0)) == repr(unseen.state(3000.0))


@settings(deadline=None)
@given(ranks=_RANKS, t=st.floats(0, 10_000))
def test_every_state_is_one_of_those_that_there_are(ranks: tuple[list[Fact], ...], t: float) -> None:
    fold = Fold("r", Config())
    fold.add_all(fact for lines in ranks for fact in lines)
    run = fold.state(t)
    assert run.state in STATES
    assert run.finished == (run.state == "finished")
    assert run.stalled_for_s >= 0
    assert run.stall_threshold_s >= 90
    assert math.isfinite(run.stall_threshold_s)
    if run.state in ("stalled", "escalated"):
        assert run.stalled_for_s > run.stall_threshold_s


@pytest.mark.parametrize("max_bytes", [1, 100_000, 1 << 30])
def test_polls_of_any_size_give_the_same_state(tmp_path: Path, max_bytes: int) -> None:
    from train_ledger.sources import RunFiles

    job = fleet.write(
        tmp_path / "run", fault="hang", culprit=3, steps=400, clock_offsets_s={"node001": 300.0}
    )
    files, fold = RunFiles(job.run_dir), Fold("run", Config())
    while True:
        fold.add_all(files.poll(max_bytes))
        if files.caught_up:
            break
    files.close()
    whole = Fold("run", Config())
    whole.add_all(read_all(job.run_dir))
    assert fold.state(job.t) == whole.state(job.t)
