"""`train-ledger postmortem`: what happened, when, and what did it cost?"""

from __future__ import annotations

from typing import Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Html, Json, Output, Run

__all__ = ["postmortem"]


def postmortem(
    run: Run,
    incident: Annotated[
        str | None, typer.Option(metavar="ID", help="Which incident; the latest if none.", show_default=False)
    ] = None,
    output: Output = None,
    json: Json = False,
    html: Html = None,
) -> int:
    """Draft the postmortem of an incident.

    Made of the journal of the run, what people noted (train-ledger note), its accounts, signals and logs:
    impact, timeline with the source of every line, cause, detection, recovery, and what to improve.

    \b
    Example:
      train-ledger postmortem runs/r42 --output postmortem.md
      train-ledger postmortem runs/r42 --html postmortem.html
    """
    from train_ledger import config, render
    from train_ledger.cli.output import show, write_document, write_page
    from train_ledger.ops.postmortem import as_markdown, as_record, report_of_postmortem
    from train_ledger.ops.postmortem import postmortem as drafted
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    draft = drafted(run_dir, config.load(run_dir), incident=incident)
    if output is not None:
        write_document(output, report_of_postmortem(draft), as_markdown(draft), "postmortem", title=str(run))
    if html is not None:
        write_page(html, report_of_postmortem(draft), "postmortem", title=str(run))
    if json:
        show(render.as_json(as_record(draft)))
    elif output is None:
        show(as_markdown(draft))
    return ExitCode.NOTHING_WRONG
