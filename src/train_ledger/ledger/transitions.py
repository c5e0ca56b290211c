"""Which moves lead from one state of a run to the next, and does each go by itself, page, or need a person?

One table. The keeper writes down by it what kind of move it saw, the hooks ask it whether a restart may go by
itself, and docs/states.md is drawn from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from train_ledger.answer import STATES

__all__ = ["MOVES", "Move", "MoveKind", "move_between", "restarts_by_itself"]

MoveKind = Literal["automatic", "page", "person"]


@dataclass(frozen=True, slots=True)
class Move:
    """From one of the states `before` to the state `after`, and `by` what.

    `kind`: "automatic" moves are made by the run or its launcher, and nobody need act; a "page" move wakes
    somebody; a "person" move is one that somebody has to decide on. `alerts` are those that belong to it.
    `drawn` are the states of `before` whose arrow stands in the drawing, which shows the usual ways alone.
    """

    before: tuple[str, ...]
    after: str
    kind: MoveKind
    by: str
    alerts: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()


_STEPPING = ("running", "recovering", "numeric_fault", "hardware_fault")
_STANDING = ("stalled", "escalated")
_ANY = tuple(STATES)


def _others(*after: str) -> tuple[str, ...]:
    return tuple(state for state in _ANY if state not in after)


MOVES: tuple[Move, ...] = (
    Move(
        ("starting",),
        "running",
        "automatic",
        "the first step is completed",
        drawn=("starting",),
    ),
    Move(
        ("running", "hardware_fault", "recovering", "numeric_fault", "starting"),
        "stalled",
        "page",
        "no step for longer than the limit, which follows the run's own pace and its phase",
        ("TrainingStepStalled",),
        drawn=("starting", "running", "hardware_fault"),
    ),
    Move(
        (*_STEPPING, "restarting"),
        "escalated",
        "page",
        "no step for longer than the limit, within 30 min of a restart: a restart does not help",
        ("TrainingStepStalled",),
        drawn=("recovering", "restarting", "running"),
    ),
    Move(
        _others("numeric_fault", "finished"),
        "numeric_fault",
        "page",
        "a loss that is not finite",
        ("TrainingLossNotFinite",),
        drawn=("running",),
    ),
    Move(
        _others("hardware_fault", "finished"),
        "hardware_fault",
        "page",
        "steps go on, but a GPU of the run has an XID of level page or a memory error, or is lost",
        ("GpuXidError", "GpuEccDbe", "GpuLost"),
        drawn=("running",),
    ),
    Move(
        ("stalled", "hardware_fault", "running", "recovering", "starting"),
        "restarting",
        "automatic",
        "a rank dies or a time-out ends it, and the launcher begins a new attempt; or the hook that restarts "
        "does, of a run that goes on behind its next checkpoint",
        ("TrainingRestarting",),
        drawn=("running", "stalled", "hardware_fault"),
    ),
    Move(
        ("numeric_fault",),
        "restarting",
        "person",
        "somebody starts it from a checkpoint at least 100 steps before the fault, and skips the data there",
        ("TrainingRestarting",),
        drawn=("numeric_fault",),
    ),
    Move(
        ("escalated",),
        "restarting",
        "person",
        "somebody has done something about the cause – left a node out, mended code, gone back in the data – "
        "and starts it anew",
        ("TrainingRestarting",),
        drawn=("escalated",),
    ),
    Move(
        ("stopped", "finished"),
        "restarting",
        "person",
        "somebody takes the run up again, or a launcher does that outlived its ranks",
        ("TrainingRestarting",),
        drawn=("stopped",),
    ),
    Move(
        ("restarting",),
        "recovering",
        "automatic",
        "the first step of the new attempt, which does again what was lost",
        drawn=("restarting",),
    ),
    Move(
        ("restarting", "recovering"),
        "running",
        "automatic",
        "the step once reached is passed; the entry `recovered` says whether loss and data join on",
        drawn=("recovering",),
    ),
    Move(
        ("numeric_fault",),
        "running",
        "automatic",
        "100 finite steps have followed",
        drawn=("numeric_fault",),
    ),
    Move(
        ("hardware_fault",),
        "running",
        "automatic",
        "what was told of the GPU is told no longer",
    ),
    Move(
        _STANDING,
        "running",
        "automatic",
        "a step is completed after all",
        drawn=("stalled",),
    ),
    Move(
        ("stopped",),
        "running",
        "automatic",
        "an attempt passes the step once reached after all",
    ),
    Move(
        _others("recovering", "restarting"),
        "recovering",
        "automatic",
        "a step below the one once reached: a new attempt whose start nobody saw, or what stood goes on",
    ),
    Move(
        ("stalled", "stopped"),
        "starting",
        "automatic",
        "before the first step of all: a rank says that it does something that may take longer",
    ),
    Move(
        (
            "restarting",
            "recovering",
            "running",
            "starting",
            "numeric_fault",
            "hardware_fault",
            "stalled",
            "finished",
        ),
        "stopped",
        "page",
        "3 restarts in a row did not pass the step once reached, or no process is left",
        ("TrainingRestartLoop", "TrainingProcessGone"),
        drawn=("recovering", "restarting", "stalled"),
    ),
    Move(
        ("escalated",),
        "stopped",
        "person",
        "nobody can say why it stands, and somebody ends it; or it ends by itself",
        ("TrainingRestartLoop", "TrainingProcessGone"),
        drawn=("escalated",),
    ),
    Move(
        _others("finished"),
        "finished",
        "automatic",
        "every rank says that its run ends",
        drawn=("running",),
    ),
)
"""Each pair of states stands in one row at most."""


def _pairs() -> Iterator[tuple[tuple[str, str], Move]]:
    for move in MOVES:
        for before in move.before:
            yield (before, move.after), move


_BY_PAIR = dict(_pairs())


def move_between(before: str | None, after: str) -> Move | None:
    """The move of which somebody saw the two ends; None where there is none, as at the first look.

    >>> move_between("stalled", "restarting").kind, move_between("escalated", "restarting").kind
    ('automatic', 'person')
    """
    return _BY_PAIR.get((before, after)) if before is not None else None


def restarts_by_itself(state: str) -> bool:
    """Whether a run in this state may be restarted without anybody's decision."""
    move = move_between(state, "restarting")
    return move is not None and move.kind == "automatic"
