"""How is what logs tell summed up for a person?"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from train_ledger.answer import NextCommand
from train_ledger.cli.read_file import file_in_brief, file_in_full
from train_ledger.cli.read_trouble import cause_in_brief, incident_in_words, worst_first
from train_ledger.render import Report
from train_ledger.render.report import Point, Section, commands, points
from train_ledger.sources import FactReading, FileRead, Incident

__all__ = ["report_of_reading"]

_MOST_IN_FULL = 10
_MOST_FILES = 200


def report_of_reading(reading: FactReading, paths: Sequence[Path]) -> Report:
    """The summary of a reading that is complete; `paths` are as they were named."""
    incidents = worst_first(reading.incidents.all)
    telling = [file for file in reading.files if file.formats or file.not_read]
    return Report(
        _verdict(reading),
        "trouble" if incidents else "fine" if _steps(reading) and not _unread(reading) else "unsure",
        (
            *points(_heading(incidents), map(incident_in_words, incidents)),
            *_files(telling),
            *points("not observed", _not_observed(reading, telling)),
            *commands(list(_next(incidents, paths))),
        ),
    )


def _heading(incidents: Sequence[Incident]) -> str:
    several = sum(it.first.fault == "xid" for it in incidents) > 1
    return f"trouble, as it was told{', but XIDs by how bad they are' if several else ''}"


def _files(telling: Sequence[FileRead]) -> list[Section]:
    if len(telling) <= _MOST_IN_FULL:
        return [section for file in telling for section in file_in_full(file)]
    return [Section("files", tuple(Point(file_in_brief(file)) for file in telling[:_MOST_FILES]))]


def _verdict(reading: FactReading) -> str:
    incidents = reading.incidents.all
    files = f"{len(reading.files)} file{'' if len(reading.files) == 1 else 's'}"
    if missed := _unread(reading):
        files += (
            f", {missed} of which could not be read"
            if len(reading.files) > 1
            else ", which could not be read"
        )
    if incidents:
        others = len(incidents) - 1
        more = f", and {others} more kind{'' if others == 1 else 's'} of trouble" if others else ""
        return f"trouble in {files}: {cause_in_brief(incidents)}{more}"
    if not any(file.formats for file in reading.files):
        return f"cannot tell, because nothing of a known format stands in {files}"
    steps = _steps(reading)
    if not steps:
        return f"cannot tell: neither a step nor trouble is told in {files}"
    verdict = "cannot tell" if missed else "nothing wrong"
    return f"{verdict} in {files}: {steps:,} lines of steps, no trouble told"


def _unread(reading: FactReading) -> int:
    """Files that could not be read, or not to their end: what stands there may be trouble."""
    return sum(file.not_read is not None for file in reading.files)


def _steps(reading: FactReading) -> int:
    return sum(it.steps for file in reading.files for it in file.formats)


def _not_observed(reading: FactReading, telling: Sequence[FileRead]) -> Iterator[str]:
    silent = [file for file in reading.files if not file.formats and not file.not_read]
    if len(silent) > 1 or (silent and telling):
        files = "1 file" if len(silent) == 1 else f"{len(silent)} files"
        yield f"{files} in which nothing of a known format stands, {silent[0].path} among them"
    if len(telling) > _MOST_FILES:
        yield f"{len(telling) - _MOST_FILES} more files were read, and are not shown here"
    if len(telling) > _MOST_IN_FULL:
        yield "more of each file, which its name alone brings"
    if reading.incidents.left_out:
        yield f"{reading.incidents.left_out} faults beyond the first kinds of trouble"


def _next(incidents: Sequence[Incident], paths: Sequence[Path]) -> Iterator[NextCommand]:
    named = " ".join(shlex.quote(str(path)) for path in paths)
    codes = {it.first.fault for it in incidents}
    if "-" in map(str, paths):
        return
    runs = [path for path in paths if os.path.isdir(path / "signals")]  # False where one may not look
    if incidents and runs:
        run = shlex.quote(str(runs[0]))
        yield NextCommand("what is wrong, who is to blame, on what evidence", f"train-ledger diagnose {run}")
    elif codes & {"watchdog_timeout", "desync", "nccl_error"}:
        logs = shlex.quote(str(paths[0]))
        yield NextCommand("who did not come to the collective", f"train-ledger hang --logs {logs}")
    if incidents:
        yield NextCommand("all faults, one a line", f"train-ledger read {named} --json --only fault")
