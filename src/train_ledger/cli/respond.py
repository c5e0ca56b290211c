"""`train-ledger respond`: the first answers to a run that stands, now."""

from __future__ import annotations

from typing import Annotated

import typer

from train_ledger.cli.options import Json, Run

__all__ = ["respond"]


def respond(
    run: Run,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask nobody and take nothing; say what would be done.")
    ] = False,
    json: Json = False,
) -> int:
    """Take dumps and stacks now, and give the verdict.

    What `watch` does on its own when a page goes out, where [respond] on_page asks for it. Then what the
    commands of [respond] for leaving out a node and restarting would do on this verdict; only a keeper runs
    them. With --dry-run the verdict rests on what the run has written already.

    \b
    Example:
      train-ledger respond runs/r42
      train-ledger respond runs/r42 --dry-run --json
    """
    from train_ledger import config
    from train_ledger.answer import exit_code
    from train_ledger.cli.output import show, show_report
    from train_ledger.cli.run_wanted import run_to_write
    from train_ledger.render import as_json, harmless
    from train_ledger.watch.answer_now import answer_now

    run_dir = run_to_write(run, "respond", begun=True)
    settings = config.load(run_dir)
    answers = answer_now(run_dir, settings, dry_run=dry_run)
    if json:
        show(as_json(answers.to_json()))
    else:
        show("\n".join(harmless(line) for line in answers.lines))
        show("")
        show_report(answers.diagnosis, currency=settings.cost.currency, picture=answers.picture)
    return exit_code(answers.diagnosis)
