"""What does a verdict consist of?

The shapes of every machine-readable answer and the meaning of exit codes. They are the contract with
scripts: names and types here change only with `SCHEMA`. All records are frozen; `to_json` turns any of them
into plain dictionaries and lists.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

__all__ = [
    "CAUSES",
    "HANG_KINDS",
    "SCHEMA",
    "STATES",
    "Confidence",
    "Diagnosis",
    "ExitCode",
    "Finding",
    "Group",
    "HangAnswer",
    "Impact",
    "NextCommand",
    "RuledOut",
    "SlowAnswer",
    "Suspect",
    "Unreadable",
    "cause_code",
    "exit_code",
    "to_json",
]

SCHEMA = 1

Confidence = Literal["high", "medium", "low"]

HANG_KINDS = (
    "collective_type_mismatch",
    "size_or_syntax_mismatch",
    "collective_dtype_mismatch",
    "cycle",
    "p2p_unpaired",
    "missing_ranks",
    "completion_laggard",
    "no_mismatch",
)
"""What can be wrong in a process group, in the order in which it is looked for."""

CAUSES = {
    "none": "nothing wrong",
    "unknown": "what is wrong, if anything, the evidence does not say",
    "hang.rank_missing": "a rank never came to a collective, and it is not known where it stands",
    "hang.mismatch": "ranks came with different operations, sizes or types, or in different orders",
    "hang.host": "a rank stands in host code, by its stack",
    "hang.gpu_stuck": "a rank's GPU does not finish what it was given",
    "hang.fabric": "all came, none finishes, no hardware fault seen",
    "hang.init": "before the first step, in the set-up of communication",
    "hang.rank_died": "a rank's process is gone or raised; the others wait for it",
    "slow.straggler.clock": "few ranks drag all: clocks, power or heat",
    "slow.straggler.link": "few ranks drag all: link errors",
    "slow.straggler.software": "few ranks drag all: their own host code",
    "slow.stage_imbalance": "unequal by the layout, nobody to blame",
    "slow.sequence_imbalance": "unequal by the data, nobody to blame",
    "slow.data": "all wait for data",
    "slow.fragmentation": "device memory is fragmented",
    "slow.logging": "the log has become the work",
    "slow.checkpoint": "checkpoints succeed too slowly",
    "slow.gc": "garbage collection pauses",
    "slow.host_memory": "host memory runs out",
    "slow.communication": "collectives take longer, compute does not",
    "numeric.nan": "the loss is not finite",
    "numeric.spike": "the loss jumped and has not gone back",
    "hardware.xid": "an XID that stops a GPU of the run, or makes its results suspect",
    "hardware.ecc": "uncorrectable memory errors",
    "hardware.gpu_lost": "a GPU is gone without an XID",
    "hardware.nic": "the network adapter",
    "restart_loop": "restarts that do not get past the step once reached",
    "checkpoint_failing": "saves fail or do not end",
    "data.position": "after a restart the data position differs",
    "telemetry_lost": "nothing is heard any more",
}


STATES = {
    "starting": "no step yet",
    "running": "steps are completed",
    "stalled": "no step for longer than the limit",
    "numeric_fault": "the loss was not finite, and not 100 finite steps have followed",
    "hardware_fault": "a GPU or link reported a fault",
    "restarting": "a new attempt has begun and has no step yet",
    "recovering": "a new attempt is on its way back to the step once reached",
    "escalated": "stands still again, soon after a restart: a restart does not help",
    "stopped": "no process is left, or restarts do not get past the step once reached",
    "finished": "every rank said that its run ended",
}
"""The states of a run, and what each means."""


class ExitCode(IntEnum):
    """What a command's exit status means."""

    NOTHING_WRONG = 0
    TROUBLE = 1
    BAD_INPUT = 2
    CANNOT_TELL = 3


@dataclass(frozen=True, slots=True)
class NextCommand:
    """The next thing to run, and why; `command` can be pasted as it is."""

    why: str
    command: str


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A cause that the evidence excludes, and the evidence."""

    cause: str
    by: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that was refused, cut short or not understood."""

    file: str
    why: str


@dataclass(frozen=True, slots=True)
class Group:
    """A process group: its global ranks as the job lists them, or as inferred from who recorded in it."""

    name: str
    desc: str
    ranks: tuple[int, ...]
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One root of a hang: who, in which group, at which operation, who waits, and what says so."""

    kind: str
    culprits: tuple[int, ...]
    group: Group | None
    seq: int | None
    op: str | None
    others_op: str | None = None
    state: str | None = None
    waiting: tuple[int, ...] = ()
    frame: str | None = None
    cause_suspected: str | None = None
    fix: str | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HangAnswer:
    """What the Flight Recorder dumps and the stacks say (`train-ledger hang --json`).

    `culprits` is the union over `findings`; `victims_of` names, for each culprit, the ranks that wait for
    it directly or through others.
    """

    verdict: Literal["hang", "no_hang", "cannot_tell"]
    culprits: tuple[int, ...] = ()
    confidence: Confidence = "low"
    kind: str | None = None
    seq: int | None = None
    op: str | None = None
    group: Group | None = None
    findings: tuple[Finding, ...] = ()
    victims_of: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    unreadable: tuple[Unreadable, ...] = ()
    missing_dumps: tuple[int, ...] = ()
    stale: tuple[str, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    not_observed: tuple[str, ...] = ()
    next: tuple[NextCommand, ...] = ()


@dataclass(frozen=True, slots=True)
class Impact:
    """What an incident has cost so far: seconds of wall time, GPU-hours, money.

    `gpu_hours` is None where the ranks have no GPU, `cost` there and where no price is known.
    """

    wall_s: float
    gpu_hours: float | None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """One thing that makes steps slow, and which figure speaks for it or against it.

    `cause` is a key of `CAUSES`. `rise_s` is what it adds to a step, as far as it can be measured; `ranks`
    are those that it holds for where it does not for all.
    """

    cause: str
    verdict: Literal["confirmed", "ruled_out", "not_observed"]
    by: str
    rise_s: float | None = None
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SlowAnswer:
    """Who drags, since when steps are slower, and why (`details` of `train-ledger slow --json`).

    `kind` is what the ranks' own work beside their peers' shows: rank, host, stage, sequence, gc, transient,
    nobody or cannot_tell; `phase` the part of the culprits' work that is longer. `culprits` are ranks that
    all others wait for, `victims` those others. Seconds are those of a usual step: `before_s` of the steps of
    `compared_with`, `now_s` of the newest;
    `slower` says that these differ by more than the noise. The change began at `since_step`, for certain
    within `since_between`. `lost_s` is what has been lost by it so far. `parts` maps a field to its seconds
    of a step before and now: "median" of the ranks, and "longest" and "least" of them in the step.
    """

    verdict: Literal["slow", "not_slow", "cannot_tell"]
    cause: str
    kind: str = "cannot_tell"
    phase: str | None = None
    culprits: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    victims: tuple[int, ...] = ()
    confidence: Confidence = "low"
    slower: bool = False
    before_s: float | None = None
    now_s: float | None = None
    compared_with: str = ""
    since_step: int | None = None
    since_between: tuple[int, int] | None = None
    since_t: float | None = None
    shape: Literal["jump", "ramp"] | None = None
    lost_s: float | None = None
    parts: Mapping[str, Mapping[str, Mapping[str, float | None]]] = field(default_factory=dict)
    suspects: tuple[Suspect, ...] = ()
    evidence: tuple[str, ...] = ()
    not_observed: tuple[str, ...] = ()
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One cause for the state of a run (`train-ledger diagnose --json`).

    `cause` is a key of `CAUSES`. `ranks`, `hosts` and `gpus` name culprits, never victims; they are empty
    where nobody is to blame. `details` is the hang or slow answer that the cause rests on.
    """

    state: str
    cause: str
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    confidence: Confidence = "low"
    since_step: int | None = None
    since_t: float | None = None
    impact: Impact | None = None
    evidence: tuple[str, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    not_observed: tuple[str, ...] = ()
    next: tuple[NextCommand, ...] = ()
    details: HangAnswer | SlowAnswer | None = None


def to_json(answer: Any) -> dict[str, Any]:
    """The answer as plain JSON values, with `schema` first.

    >>> to_json(HangAnswer(verdict="no_hang"))["schema"]
    1
    """
    return {"schema": SCHEMA, **_plain(answer)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [_plain(item) for item in value]
    return value


def exit_code(answer: HangAnswer | Diagnosis) -> ExitCode:
    """The exit status that goes with an answer."""
    if isinstance(answer, HangAnswer):
        return {
            "hang": ExitCode.TROUBLE,
            "no_hang": ExitCode.NOTHING_WRONG,
            "cannot_tell": ExitCode.CANNOT_TELL,
        }[answer.verdict]
    return cause_code(answer.cause)


def cause_code(cause: object) -> ExitCode:
    """The exit status that goes with a cause."""
    if cause == "none":
        return ExitCode.NOTHING_WRONG
    return ExitCode.TROUBLE if cause in CAUSES and cause != "unknown" else ExitCode.CANNOT_TELL
