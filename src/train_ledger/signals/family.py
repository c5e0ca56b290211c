"""Is this process a rank, or the child of the process that is?

A loader's worker that is spawned imports the training script anew and calls its start() again; were it heard,
its end would be the rank's. So start() leaves a mark in the environment, which children inherit: a process
whose living ancestor speaks for the same rank is silent. Launchers, which start ranks and are none, have
never called start() and leave no mark.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Speaker", "leave_mark", "speaker_of", "take_mark"]

_MARK = "TRAIN_LEDGER_SPEAKER"
_GENERATIONS = 100


class Speaker(NamedTuple):
    """A process that speaks for a rank, and the file it writes."""

    pid: int
    rank: int
    attempt: int
    file: str


def leave_mark(rank: int, attempt: int, file: Path) -> None:
    """This process speaks for `rank`, or is silent in the place of one that does."""
    os.environ[_MARK] = f"{os.getpid()} {rank} {attempt} {file}"


def take_mark() -> None:
    """This process speaks no more: the ranks that it starts from now on are ranks."""
    speaker = _marked()
    if speaker is not None and speaker.pid == os.getpid():
        os.environ.pop(_MARK, None)


def speaker_of(rank: int, file: Path) -> Speaker | None:
    """The living ancestor that speaks for `rank` already; None where this process is to.

    A child of `multiprocessing` is taken for a worker even where its file would be another, since many a
    script names its run by the time.
    """
    speaker = _marked()
    if speaker is None or speaker.rank != rank or speaker.pid == os.getpid():
        return None
    same = speaker.file == str(file) or speaker.pid in _multiprocessing_parents()
    return speaker if same and speaker.pid in _ancestors() else None


def _marked() -> Speaker | None:
    pid, rank, attempt, file = [*os.environ.get(_MARK, "").split(" ", 3), "", "", "", ""][:4]
    if not (pid.isdecimal() and rank.isdecimal() and attempt.isdecimal()):
        return None
    return Speaker(int(pid), int(rank), int(attempt), file)


def _multiprocessing_parents() -> tuple[int, ...]:
    """Whose child multiprocessing made this process; while it imports the script anew, who it may be."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is None:
        return ()
    if (parent := multiprocessing.parent_process()) is not None:
        return (int(parent.pid),)
    if not getattr(multiprocessing.current_process(), "_inheriting", False):
        return ()
    # Who the parent is is not told yet: that of this process, or of the server that it was forked from.
    served = any("multiprocessing.forkserver" in argument for argument in sys.orig_argv)
    return (os.getppid(), _parent(os.getppid())) if served else (os.getppid(),)


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    for _ in range(_GENERATIONS):
        if pid <= 0:
            return
        yield pid
        pid = _parent(pid)


def _parent(pid: int) -> int:
    """0 where there is none, or /proc does not tell."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
