"""Is the folder that a verb is to write into that of a run?

A keeper may be started before its job, so that an empty folder will do, and one with the scheduler's own
files. In a folder of dumps, of logs or of several runs nothing is made: another one was meant.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from train_ledger.cli.leave import BadInputError
from train_ledger.run_dir import RunDir

__all__ = ["run_to_write"]

_PARTS_OF_A_RUN = frozenset(
    ("run.json", "ranks.jsonl", "signals", "structured_logs", "logs", "hardware", "requests", "ledger",
     "comm_traces", "stacks", "notes", "train-ledger.toml")
)  # fmt: skip
_OF_A_RANK = re.compile(r"rank_?\d+(?:\.json|\.txt)?\Z")
"""Dumps and stacks; logs of ranks may be there before the job's first line."""


def run_to_write(path: Path, verb: str, *, begun: bool = False) -> RunDir:
    """The run directory at `path`; where the job must have `begun`, something of it has to be there.

    Raises RunDirError where there is no folder, and BadInputError with the command that would be right where
    it is something else's.
    """
    run_dir = RunDir.existing(path)
    if _may_be_a_run(path, begun):
        return run_dir
    right = next(_meant(path, verb), "name the folder that the job gives to train_ledger.start()")
    raise BadInputError(f"{path}: is no run directory (neither run.json nor signals/ is in it); {right}")


def _may_be_a_run(folder: Path, begun: bool) -> bool:
    there = [it for it in folder.iterdir() if not it.name.startswith(".")]
    if any(it.name in _PARTS_OF_A_RUN for it in there):
        return True
    return not begun and not any(it.is_dir() or _OF_A_RANK.search(it.name) for it in there)


def _meant(folder: Path, verb: str) -> Iterator[str]:
    """The run that the folder lies in, else one that lies in it, else what reads the files in it."""
    from train_ledger.hang import meant_instead

    above = list(folder.resolve().parents)[:2]
    for run in (*above, *sorted(folder.iterdir(), reverse=True)):
        if os.path.isdir(run / "signals"):  # unlike Path.is_dir, False where one may not look
            yield f"that of a run: train-ledger {verb} {shlex.quote(str(run))}"
    for it in meant_instead([str(folder)]):
        yield f"{it.why}: {it.command}"
