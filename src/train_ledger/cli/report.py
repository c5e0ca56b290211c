"""`train-ledger report`: what was on record lately, and what can be done about it by day?"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import At, Json, Output, moment

__all__ = ["report"]

_LENGTH = re.compile(r"(\d{1,6})(min|h|d)\Z")
_SECONDS = {"min": 60.0, "h": 3600.0, "d": 86_400.0}


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run directories.", show_default=False)],
    since: Annotated[
        str, typer.Option(metavar="LENGTH|T", help="From when on: 7d, 24h, or a time as --at takes it.")
    ] = "7d",
    at: At = None,
    output: Output = None,
    json: Json = False,
) -> int:
    """Report what was on record lately, and what it cost.

    The alerts that woke nobody, by host: how often, how long, more or fewer than before; the pages; the
    effective training time and what the rest cost. From the journals, for the meeting once a week.

    \b
    Example:
      train-ledger report runs/r42 --since 7d
      train-ledger report runs/r41 runs/r42 --since 24h --output monday.html
    """
    from train_ledger import config, render
    from train_ledger.answer import to_json
    from train_ledger.cli.output import show, show_report, write_document
    from train_ledger.ops.markdown import markdown_of
    from train_ledger.ops.weekly import report_of_weekly, weekly
    from train_ledger.run_dir import RunDir

    until_t = time.time() if at is None else at
    since_t = _since(since, until_t)
    folders = [RunDir.existing(run) for run in runs]
    found = weekly([(folder, config.load(folder)) for folder in folders], since_t, until_t)
    told = report_of_weekly(found)
    if output is not None:
        write_document(output, told, markdown_of(told))
    if json:
        show(render.as_json(to_json(found)))
    elif output is None:
        show_report(told)
    return ExitCode.NOTHING_WRONG


def _since(text: str, until_t: float) -> float:
    """The moment that lies so long before, or that is named; raises BadInputError for one not earlier."""
    from train_ledger.cli.leave import BadInputError

    length = _LENGTH.match(text)
    since_t = until_t - int(length[1]) * _SECONDS[length[2]] if length else moment(text)
    if not 0 <= since_t < until_t:
        raise BadInputError(
            f"--since {text}: is not before the end of the report; 7d, 24h or a time is wanted"
        )
    return since_t
