"""What does the answer about the signals of a run consist of? The shape of `train-ledger coverage --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from train_ledger.answer import ExitCode, NextCommand

__all__ = ["Arrival", "CauseCoverage", "Coverage", "SignalCoverage", "exit_code_of"]


@dataclass(frozen=True, slots=True)
class Arrival:
    """From how many of how many ranks or hosts a signal comes, and when it came last (unix s).

    `oldest_t` is when it came last from the one of whom it came the longest ago; `missing` are ranks or hosts
    of whom it does not come; `why` is what spoils it though it comes.
    """

    have: int = 0
    of: int = 0
    newest_t: float | None = None
    oldest_t: float | None = None
    missing: tuple[int | str, ...] = ()
    why: str = ""

    @property
    def is_whole(self) -> bool:
        return self.of > 0 and self.have >= self.of

    @property
    def comes(self) -> bool:
        return self.have > 0


@dataclass(frozen=True, slots=True)
class SignalCoverage:
    """One signal: whether it arrives, which causes rest on it, and how it is had."""

    name: str
    what: str
    arrival: Arrival
    causes: tuple[str, ...]
    get: str


@dataclass(frozen=True, slots=True)
class CauseCoverage:
    """Whether a cause could be told now.

    "partly": of some ranks or hosts alone. "not_needed": the run cannot have it, as `why` says. `by` are the
    signals that arrive for it, `missing` groups of which none does, or not of all.
    """

    cause: str
    told: Literal["yes", "partly", "no", "not_needed"]
    by: tuple[str, ...] = ()
    missing: tuple[tuple[str, ...], ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What could be told of a run as known at `t`; `verdicts` are the lines that are read first."""

    run: str
    t: float
    state: str
    ranks: int
    world_size: int | None
    hosts: tuple[str, ...]
    verdicts: tuple[str, ...]
    causes: tuple[CauseCoverage, ...]
    signals: tuple[SignalCoverage, ...]
    not_observed: tuple[str, ...] = ()
    next: tuple[NextCommand, ...] = ()
    arrives: bool = True


def exit_code_of(answer: Coverage) -> ExitCode:
    """0: every cause could be told; 1: some could not; 3: nothing arrives."""
    if not answer.arrives:
        return ExitCode.CANNOT_TELL
    untold = any(it.told in ("no", "partly") for it in answer.causes)
    return ExitCode.TROUBLE if untold else ExitCode.NOTHING_WRONG
