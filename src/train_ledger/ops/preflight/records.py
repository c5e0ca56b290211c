"""What does a preflight answer?

An item of the list consists of checks, and each of them passes, fails, or is not possible here and says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from train_ledger.ops.coverage import Coverage

__all__ = [
    "Check",
    "ItemAnswer",
    "Preflight",
    "PreflightError",
    "Verdict",
    "failed",
    "not_possible",
    "passed",
]

Verdict = Literal["pass", "fail", "not_possible"]


class PreflightError(Exception):
    """What was asked for cannot be checked; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question of an item: what was found, in words and figures, or why it could not be asked.

    `fix` is what to do where it failed, or what would make it possible.
    """

    name: str
    verdict: Verdict
    said: str
    fix: str = ""


def passed(name: str, said: str) -> Check:
    """A check that holds."""
    return Check(name, "pass", said)


def failed(name: str, said: str, fix: str) -> Check:
    """A check that does not hold, and what to do."""
    return Check(name, "fail", said, fix)


def not_possible(name: str, why: str, fix: str = "") -> Check:
    """A check that cannot be made here, and what would make it possible."""
    return Check(name, "not_possible", why, fix)


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """One item of the list with its checks; the number is the list's."""

    number: int
    key: str
    title: str
    criterion: str
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """fail where one check fails, not_possible where none could be made, else pass."""
        found = {check.verdict for check in self.checks}
        if "fail" in found:
            return "fail"
        return "pass" if "pass" in found else "not_possible"

    @property
    def open(self) -> int:
        """How many of its checks could not be made here."""
        return sum(check.verdict == "not_possible" for check in self.checks)


@dataclass(frozen=True, slots=True)
class Preflight:
    """The whole answer (`train-ledger preflight --json`).

    `run` is the run directory, None where there is none; `where` says in words what it was tried on;
    `not_asked` are the titles of the items that were left out on request. `coverage` is what
    `train-ledger coverage` answers of the run, None where nothing of it arrives; it decides nothing here.
    """

    run: str | None
    began_t: float
    took_s: float
    where: str
    items: tuple[ItemAnswer, ...]
    not_asked: tuple[str, ...] = ()
    coverage: Coverage | None = None

    @property
    def verdict(self) -> Verdict:
        """fail where an item fails, not_possible where nothing could be checked, else pass."""
        found = {item.verdict for item in self.items}
        if "fail" in found:
            return "fail"
        return "pass" if "pass" in found else "not_possible"
