"""What does the answer about one rank consist of?

The shape of `train-ledger rank --json`. Times are unix seconds on the clock of rank 0's host; of files, their
modification times. What is not known is None or empty, and said in `not_observed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from train_ledger.answer import ExitCode, NextCommand

__all__ = [
    "DOING",
    "Collective",
    "Doing",
    "GpuNow",
    "LogTail",
    "RankAnswer",
    "StackNow",
    "Waiting",
    "Where",
    "exit_code_of",
]

Doing = Literal["steps", "stands", "behind", "gone", "raised", "signalled", "ended", "unheard", "silent"]

DOING: Mapping[Doing, str] = {
    "steps": "it completes steps with the others",
    "stands": "the run stands still, and so does it",
    "behind": "it has not completed a step that most others have, while the run stands still",
    "gone": "its process was found gone before its end",
    "raised": "it raised an exception that nobody caught",
    "signalled": "a signal was to end its process",
    "ended": "it said that its run ended",
    "unheard": "the run goes on, but no line of this rank has come for longer than its limit",
    "silent": "nothing that it wrote is known",
}
"""What a rank can be doing, and what each means."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where it runs, by its own run_start, else by ranks.jsonl; rack and switch port by ranks.jsonl alone."""

    host: str | None = None
    local_rank: int | None = None
    gpu: int | None = None
    uuid: str | None = None
    pci: str | None = None
    pid: int | None = None
    rack: str | None = None
    switch_port: str | None = None


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last lines of the log that the launcher keeps of it, and when the file was written last."""

    file: str
    t: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StackNow:
    """Its newest stack: when it was taken, where that is in words, and its frames, innermost call first."""

    file: str
    t: float
    what: str
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collective:
    """The last operation that its Flight Recorder dump holds: what it waits in, else what it last finished.

    `issued_t` is when it was issued, by its own host's clock; `others` are the group's other ranks where the
    dump lists them; `frame` is where in the code it was called.
    """

    file: str
    t: float
    op: str
    seq: int
    state: str
    done: bool
    group: str
    others: tuple[int, ...] = ()
    issued_t: float | None = None
    frame: str | None = None


@dataclass(frozen=True, slots=True)
class GpuNow:
    """The last reading of its GPU, by dcgm-exporter's names, and what is wrong with it, in words.

    `seen_t` is None where the kernel alone speaks of it.
    """

    seen_t: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """Who waits for it, and by what that is known."""

    ranks: tuple[int, ...]
    by: str


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """What one rank is doing at `t`.

    `ahead` is its last step less the run's, so that -1 is one step behind; `state` is the run's. `lines` are
    the last signal lines that it wrote, as they are. `verdict` says `doing` in one sentence.
    """

    rank: int
    run: str
    t: float
    state: str
    doing: Doing
    verdict: str = ""
    world_size: int | None = None
    attempt: int = 0
    step: int | None = None
    step_t: float | None = None
    run_step: int | None = None
    ahead: int | None = None
    phase: str | None = None
    phase_since_t: float | None = None
    heard_t: float | None = None
    gone_t: float | None = None
    exception: str | None = None
    raised_t: float | None = None
    signal: int | None = None
    signal_t: float | None = None
    where: Where = field(default_factory=Where)
    lines: tuple[str, ...] = ()
    log: LogTail | None = None
    stack: StackNow | None = None
    collective: Collective | None = None
    gpu: GpuNow | None = None
    waiting: Waiting | None = None
    not_observed: tuple[str, ...] = ()
    next: tuple[NextCommand, ...] = ()


_FINE = ("steps", "ended")


def exit_code_of(answer: RankAnswer) -> ExitCode:
    """0: it goes on, or has ended with its run; 1: it, its GPU or the run does not; 3: nobody can tell."""
    if answer.doing in ("silent", "unheard"):
        return ExitCode.CANNOT_TELL
    has_fault = answer.gpu is not None and bool(answer.gpu.faults)
    is_fine = answer.doing in _FINE and not has_fault
    if answer.doing == "ended" and answer.state != "finished":
        is_fine = False
    return ExitCode.NOTHING_WRONG if is_fine else ExitCode.TROUBLE
