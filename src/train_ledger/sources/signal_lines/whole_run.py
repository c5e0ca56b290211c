"""What do the files of a run directory say in all, read once?"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from train_ledger.facts import Fact
from train_ledger.run_dir import RunDir
from train_ledger.sources.signal_lines.run_files import RunFiles

__all__ = ["Reading", "read_all", "read_whole"]


class Reading(NamedTuple):
    """Facts in the order in which they are to be folded, and what was not read, as `RunFiles.not_read`."""

    facts: list[Fact]
    not_read: tuple[str, ...]


def read_whole(run_dir: RunDir, hosts: Collection[str] | None = None) -> Reading:
    """All that the files of a run directory hold now; a last line without its newline is counted as torn."""
    files = RunFiles(run_dir, hosts)
    try:
        facts = files.poll()
        while not files.caught_up:
            facts += files.poll()
        files.give_up_tails()
        return Reading(facts, files.not_read)
    finally:
        files.close()


def read_all(run_dir: RunDir, hosts: Collection[str] | None = None) -> list[Fact]:
    """The facts alone of `read_whole`."""
    return read_whole(run_dir, hosts).facts
