"""`train-ledger postmortem`: what happened, when, and what did it cost?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Json, Run

__all__ = ["postmortem"]


def postmortem(
    run: Run,
    incident: Annotated[
        str | None, typer.Option(metavar="ID", help="Which incident; the latest if none.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file instead.", show_default=False)
    ] = None,
    json: Json = False,
) -> int:
    """Draft the postmortem of an incident.

    Markdown, made from the journal of the run: timeline, cost, cause, and what is left for people to fill in.

    \b
    Example:
      train-ledger postmortem runs/r42 --output postmortem.md
    """
    from train_ledger import config, ops
    from train_ledger.cli.output import show, write_file
    from train_ledger.render import as_json
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    markdown = ops.postmortem(run_dir, config.load(run_dir), incident=incident)
    if output is not None:
        write_file(output, markdown.encode())
    if json:
        show(as_json({"incident": incident or ops.latest_incident(run_dir), "markdown": markdown}))
    elif output is None:
        show(markdown)
    return ExitCode.NOTHING_WRONG
