"""Which of the files that are read together are of one run?

A folder of logs may hold those of strangers, and what is told of rank 0 in one says nothing of rank 0 in the
next. One run are the files of a run directory, the ranks' files below torchrun's attempt_N, torchtitan's
structured logs, of which each start begins a new one, and the parts of a log that is rotated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from train_ledger.sources.logs.torchrun import LogPlace
from train_ledger.sources.reading.attempt_count import AttemptCount, RankStreams

__all__ = ["IN_A_RUN", "Belonging", "by_age", "host_folder", "is_run", "parts_in_order"]

IN_A_RUN = ("signals", "structured_logs", "logs", "hardware", "stacks")
"""Folders of a run directory in which logs lie."""
_PART = re.compile(r"(?P<log>.{1,255})\.(?P<number>[1-9][0-9]{0,3})(?:\.gz)?\Z", re.DOTALL)
_STRUCTURED = re.compile(r"(?P<log>.{1,80}?)\.global_rank_[0-9]{1,7}\.[\w-]{1,40}\.jsonl\Z")


class Belonging:
    """Hands each file the count of its attempts, which goes on from file to file of one run alone."""

    def __init__(self) -> None:
        self._ranks: dict[str, RankStreams] = {}
        self._runs: dict[str, str | None] = {}
        self._named: dict[str, str] = {}
        self._last: tuple[str, str, AttemptCount] | None = None

    def include(self, folder: Path, run: Path) -> None:
        """What lies below `folder` is of this run directory, though elsewhere."""
        self._named[os.path.abspath(folder)] = os.path.abspath(run)

    def attempts(self, path: Path, place: LogPlace) -> AttemptCount:
        """The count for the next file; parts of a rotated log follow each other, as `parts_in_order` does."""
        log = _log_of(path)
        if self._last is not None and self._last[0] == log and self._last[1] != str(path):
            count = self._last[2]
        else:
            run = self._run_of(path, place)
            ranks = RankStreams() if run is None else self._ranks.setdefault(run, RankStreams())
            count = AttemptCount(str(path), place.attempt, ranks)
        self._last = log, str(path), count
        return count

    def _run_of(self, path: Path, place: LogPlace) -> str | None:
        folder = os.path.dirname(os.path.abspath(path))
        if folder not in self._runs:
            named = (self._named.get(str(it)) for it in (Path(folder), *Path(folder).parents))
            self._runs[folder] = next(filter(None, named), None) or _run_directory(Path(folder))
        if self._runs[folder] is not None:
            return self._runs[folder]
        if place.attempt is not None and (place.rank is not None or place.local_rank is not None):
            return os.path.abspath(host_folder(path))
        structured = _STRUCTURED.match(path.name)
        return os.path.join(folder, structured["log"]) if structured else None


def _run_directory(folder: Path) -> str | None:
    """The run directory whose logs lie in `folder`."""
    inside = (it for it in (folder, *folder.parents) if it.name in IN_A_RUN and is_run(it.parent))
    return next((str(it.parent) for it in inside), None)


def is_run(folder: Path) -> bool:
    # unlike those of Path, False where one may not look
    return os.path.isfile(folder / "run.json") or os.path.isdir(folder / "signals")


def host_folder(path: Path) -> Path:
    """The folder that torchrun's attempts lie in."""
    return next((it.parent for it in path.parents if it.name.startswith("attempt_")), path.parent.parent)


def _log_of(path: Path) -> str:
    """The log that a file is a part of: `train.log.1` of the `train.log` beside it, if there is one."""
    part = _PART.match(path.name)
    logs = [path.with_name(part["log"]), path.with_name(f"{part['log']}.gz")] if part else []
    return os.path.abspath(next((it for it in logs if os.path.lexists(it)), path))


def parts_in_order(paths: Iterable[Path]) -> list[Path]:
    """The files as they come, but the parts of one log beside each other, the oldest first.

    A shell gives `train.log*` the other way round.
    """
    logs: dict[str, list[Path]] = {}
    for path in paths:
        logs.setdefault(_log_of(path), []).append(path)
    return [path for parts in logs.values() for path in sorted(parts, key=lambda it: by_age(it.name))]


def by_age(name: str) -> tuple[str, float]:
    """A rotated file (`rank_5.jsonl.2`, `train.log.1.gz`) comes before what was written after it."""
    stem, _, number = name.removesuffix(".gz").rpartition(".")
    if stem and number.isdecimal() and len(number) < 9:
        return stem, -int(number)
    return name.removesuffix(".gz"), 0.5
