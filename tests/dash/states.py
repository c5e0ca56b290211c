"""Run states by hand, as the fold would make them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from train_ledger.ledger.state import Attempt, RankState, RunState

T0 = 1_764_000_000.0
"""When the first attempt of every run here began."""


def running(
    *, t: float, ranks: int = 4, step: int = 100, last_step_t: float | None = None, **others: Any
) -> RunState:
    """A run of one host whose ranks all completed `step`, just now unless `last_step_t` says otherwise."""
    last = t if last_step_t is None else last_step_t
    members = {
        rank: RankState(
            rank=rank,
            host="node1",
            gpu=rank,
            pid=1000 + rank,
            step=step,
            step_t=last,
            first_step_t=T0 + 5,
            heard_t=last,
            values={"loss": 2.5, "step_time_s": 1.0},
        )
        for rank in range(ranks)
    }
    state = RunState(
        run="r42",
        t=t,
        state="running",
        since_t=T0 + 5,
        world_size=ranks,
        step=step,
        last_step_t=last,
        p50_step_time_s=1.0,
        stall_threshold_s=90.0,
        ranks=members,
        attempts=(Attempt(0, T0, first_step=1, first_step_t=T0 + 5, last_step=step),),
    )
    return replace(state, **others)


def with_rank(state: RunState, rank: int, **changes: Any) -> RunState:
    """The state with one rank changed."""
    return replace(state, ranks={**state.ranks, rank: replace(state.ranks[rank], **changes)})
