"""Is this folder a run directory, or logs or dumps that somebody put into a folder of their own?

People who are woken have a folder of logs from a host, or of dumps that were copied together. It is read as a
run directory that has nothing else.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from train_ledger.run_dir import RunDir

__all__ = ["as_run"]

_OF_A_RUN = (
    "run.json",
    "ranks.jsonl",
    "signals",
    "structured_logs",
    "logs",
    "comm_traces",
    "stacks",
    "hardware",
    "requests",
    "ledger",
)
_DUMP = re.compile(r"(?:.{0,200}[_-])?rank_(?:.{1,200}_)?\d{1,7}(?:\.json|\.pickle|\.pkl)?")
_LOG = re.compile(r"(?:.{1,250}\.(?:log|out|err|txt|stderr|stdout)(?:\.\d{1,4})?|stderr|stdout)")
_MOST_FILES = 5000
"""More are no folder that somebody put together, but one that holds much else."""


class _FolderOfLogs(RunDir):
    """A folder whose files are logs."""

    __slots__ = ()

    @property
    def logs(self) -> Path:
        return self.path


class _FolderOfDumps(RunDir):
    """A folder whose files are Flight Recorder dumps."""

    __slots__ = ()

    def comm_traces(self, attempt: int = 0) -> Path:
        return self.path if attempt == 0 else RunDir(self.path).comm_traces(attempt)


def as_run(run_dir: RunDir) -> RunDir:
    """The same where it is a run directory, or has nothing of one; else one that finds its files in it."""
    folder = run_dir.path
    if not folder.is_dir() or any((folder / name).exists() for name in _OF_A_RUN) or _has_run_near(folder):
        return run_dir
    names = [os.path.basename(it) for it in itertools.islice(_files(folder), _MOST_FILES + 1)]
    if len(names) > _MOST_FILES:
        return run_dir
    if any(_DUMP.fullmatch(name) for name in names):
        return _FolderOfDumps(folder)
    return _FolderOfLogs(folder) if any(_LOG.fullmatch(name) for name in names) else run_dir


def _has_run_near(folder: Path) -> bool:
    """Whether it lies in a run directory, or holds some: then that is what is meant."""
    try:
        near = (folder.resolve().parent, *(it for it in folder.iterdir() if it.is_dir()))
    except OSError:
        return False
    return any((it / "signals").is_dir() for it in near)


def _files(folder: Path) -> Iterator[str]:
    for at, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        yield from (os.path.join(at, name) for name in sorted(names) if not name.startswith("."))
