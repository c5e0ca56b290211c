"""Whose dump is there, whose is missing, and why?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from train_ledger.answer import ExitCode, Unreadable

__all__ = ["Gathered"]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The dumps that are there and whole, and which are missing, why; by rank.

    `by` says by which way a rank left its dump, `folder` is where they lie, `hosts_s` what each host took,
    `silent` the hosts that sent nothing, `unread` what was not read on the way.
    """

    files: Mapping[int, Path]
    missing: Mapping[int, str]
    by: Mapping[int, str]
    folder: Path
    attempt: int = 0
    took_s: float = 0.0
    unread: tuple[Unreadable, ...] = ()
    hosts_s: Mapping[str, float] = field(default_factory=dict)
    silent: tuple[str, ...] = ()

    @property
    def status(self) -> ExitCode:
        if not self.files:
            return ExitCode.CANNOT_TELL
        return ExitCode.TROUBLE if self.missing or self.silent else ExitCode.NOTHING_WRONG
