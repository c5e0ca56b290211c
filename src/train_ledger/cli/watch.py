"""`train-ledger watch`: follow a run, page when it stops, and take the evidence while it lives."""

from __future__ import annotations

from typing import Annotated

import typer

from train_ledger.cli.options import Run

__all__ = ["watch"]


def watch(
    run: Run,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address that the page is served at.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Its port; 0 takes a free one.")
    ] = 9467,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Serve the web page and the metrics.")] = True,
    until_verdict: Annotated[
        bool, typer.Option("--until-verdict", help="End after the first verdict, with its exit status.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Tell what happens as one JSON object a line.")
    ] = False,
) -> int:
    """Follow a run, page, and give the verdict.

    Judges the step clock, pages once, and takes dumps and stacks while the job lives. Ends by Ctrl-C,
    or with --until-verdict after the first verdict; the end of the run alone does not end it.
    One keeper watches one run; a second one says who holds it. Where no rank writes signals, the logs
    in logs/ and structured_logs/ are followed until one does.

    \b
    Example:
      train-ledger watch runs/r42
      train-ledger watch runs/r42 --no-web --until-verdict --json
    """
    from train_ledger import config
    from train_ledger.cli.output import show
    from train_ledger.cli.run_wanted import run_to_write

    run_dir = run_to_write(run, "watch")
    settings = config.load(run_dir)
    from train_ledger import watch as room

    return room.watch(
        run_dir,
        settings,
        host=host,
        port=port if web else None,
        until_verdict=until_verdict,
        as_json=json,
        out=show,
    )
