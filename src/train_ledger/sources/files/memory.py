"""What must a reader of a run's files know of an earlier one, to go on as if it had never stopped?"""

from __future__ import annotations

from collections import Counter
from typing import Self

import msgspec

from train_ledger.sources.files.folder import FolderFollower
from train_ledger.sources.files.follow import Follower
from train_ledger.sources.files.positions import Known, Position, Start

__all__ = ["Counted", "FilesMemory", "FollowerMemory", "HardwareMemory"]


class Counted(msgspec.Struct, frozen=True):
    """What was not read, by reason, and where it was met last."""

    counts: dict[str, int] = {}
    where: dict[str, str] = {}

    @classmethod
    def of(cls, counts: Counter[str], where: dict[str, str]) -> Self:
        return cls(dict(counts), dict(where))

    def recall(self, counts: Counter[str], where: dict[str, str]) -> None:
        """Go on counting from here."""
        counts.update(self.counts)
        where.update(self.where)


class FollowerMemory(msgspec.Struct, frozen=True):
    """Where a follower stood in its files, and what it had counted."""

    positions: tuple[Position, ...] = ()
    skipped: Counted = Counted()
    troubles: dict[str, str] = {}

    @classmethod
    def of(cls, follower: Follower) -> Self:
        skipped = follower.skipped
        return cls(follower.positions(), Counted.of(skipped, skipped.where), follower.troubles.open)

    def recall(self, follower: Follower) -> None:
        """Let a new follower go on reading and counting from here."""
        follower.begin(Start(self.positions))
        self.skipped.recall(follower.skipped, follower.skipped.where)
        follower.troubles.recall(self.troubles)


class HardwareMemory(msgspec.Struct, frozen=True):
    """The same for what is recorded of hardware: readings, and the kernels' lines."""

    readings: FollowerMemory = FollowerMemory()
    kernel: FollowerMemory = FollowerMemory()
    bad_lines: Counted = Counted()


class FilesMemory(msgspec.Struct, frozen=True):
    """The same for all files of a run directory, and where each rank runs."""

    signals: FollowerMemory = FollowerMemory()
    ranks: FollowerMemory = FollowerMemory()
    bad_lines: Counted = Counted()
    host_of: dict[int, str] = {}
    hardware: HardwareMemory = HardwareMemory()

    def fits(self, signals: FolderFollower) -> bool:
        """Whether any signal file is one of those that this speaks of; else it is another run's by now."""
        positions = [position for position in self.signals.positions if position.offset]
        return not positions or Known(positions).fit(signals.paths())
