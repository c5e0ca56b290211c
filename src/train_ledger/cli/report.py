"""`train-ledger report`: what was on record lately, and what can be done about it by day?"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import At, Html, Json, Output, moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from train_ledger.answer import Unreadable
    from train_ledger.config import Config
    from train_ledger.run_dir import RunDir

__all__ = ["report"]

_LENGTH = re.compile(r"(\d{1,6})(min|h|d)\Z")
_SECONDS = {"min": 60.0, "h": 3600.0, "d": 86_400.0}
_WANTED = "wanted are 7d, 24h, 90min, unix seconds, or a time like 2026-11-30T03:12:00+00:00"


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN…", help="Run directories.", show_default=False, readable=False),
    ],
    since: Annotated[
        str, typer.Option(metavar="LENGTH|T", help="From when on: 7d, 24h, or a time as --at takes it.")
    ] = "7d",
    at: At = None,
    output: Output = None,
    json: Json = False,
    html: Html = None,
) -> int:
    """Report what was on record lately, and what it cost.

    The alerts that woke nobody, by host: how often, how long, more or fewer than before; the pages; the
    effective training time and what the rest cost. From the journals, for the meeting once a week.
    One of several runs that is not there or cannot be read is named, the others are reported on, and the exit
    status is 2; it is 3 where nothing is known of any of them.

    \b
    Example:
      train-ledger report runs/r42 --since 7d
      train-ledger report runs/r41 runs/r42 --since 24h --html monday.html
    """
    from train_ledger import render
    from train_ledger.answer import to_json
    from train_ledger.cli.output import show, show_report, write_document, write_page
    from train_ledger.ops.markdown import markdown_of
    from train_ledger.ops.weekly import report_of_weekly, weekly

    until_t = time.time() if at is None else at
    since_t = _since(since, until_t)
    folders, missing = _existing(runs)
    _want_each_once(folders)
    settings, unusable = _with_settings(folders, is_alone=len(runs) == 1)
    found = weekly(settings, since_t, until_t, (*missing, *unusable))
    told = report_of_weekly(found)
    title = str(runs[0]) if len(runs) == 1 else f"{len(runs)} runs"
    if output is not None:
        write_document(output, told, markdown_of(told), "report", title=title)
    if html is not None:
        write_page(html, told, "report", title=title, at=at)
    if json:
        show(render.as_json(to_json(found)))
    elif output is None:
        show_report(told)
    if found.unreadable:
        return ExitCode.BAD_INPUT
    return ExitCode.NOTHING_WRONG if found.is_known else ExitCode.CANNOT_TELL


def _existing(runs: Sequence[Path]) -> tuple[list[RunDir], list[Unreadable]]:
    """The folders of the runs, and those of several that are not there; raises RunDirError for one alone."""
    from train_ledger.answer import Unreadable
    from train_ledger.run_dir import RunDir, RunDirError

    folders, missing = [], []
    for run in runs:
        try:
            folders.append(RunDir.existing(run))
        except RunDirError as error:
            if len(runs) == 1:
                raise
            missing.append(Unreadable(str(run), str(error).removeprefix(f"{run}: ")))
    return folders, missing


def _with_settings(
    folders: Sequence[RunDir], *, is_alone: bool
) -> tuple[list[tuple[RunDir, Config]], list[Unreadable]]:
    """The runs with their configurations, and those of several whose configuration cannot be used."""
    from train_ledger import config
    from train_ledger.answer import Unreadable

    runs, unreadable = [], []
    for folder in folders:
        try:
            runs.append((folder, config.load(folder)))
        except config.ConfigError as error:
            if is_alone:
                raise
            unreadable.append(Unreadable(str(folder.path), str(error)))
    return runs, unreadable


def _want_each_once(folders: Sequence[RunDir]) -> None:
    """Raises BadInputError for a run that is named twice, or by a link, too: its hours would count twice."""
    from train_ledger.cli.leave import BadInputError

    named: dict[Path, Path] = {}
    for folder in folders:
        first = named.setdefault(folder.path.resolve(), folder.path)
        if first is not folder.path:
            as_what = "" if first == folder.path else f", as {first}, too"
            raise BadInputError(f"{folder.path}: is named twice{as_what}; name each run once")


def _since(text: str, until_t: float) -> float:
    """The moment that lies so long before, or that is named; raises BadInputError for one not earlier."""
    from train_ledger.cli.leave import BadInputError

    length = _LENGTH.match(text)
    since_t = max(0.0, until_t - int(length[1]) * _SECONDS[length[2]]) if length else _named(text)
    if not 0 <= since_t < until_t:
        raise BadInputError(f"--since {text}: is not before the end of the report; {_WANTED}")
    return since_t


def _named(text: str) -> float:
    from train_ledger.cli.leave import BadInputError

    try:
        return moment(text)
    except typer.BadParameter:
        raise BadInputError(f"--since {text}: is no length of time and no time; {_WANTED}") from None
