"""`train-ledger account`: what did the run do with its time?"""

from __future__ import annotations

from typing import Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import At, HtmlOrOutput, Json, Run, moment

__all__ = ["account"]


def account(
    run: Run,
    at: At = None,
    since: Annotated[
        float | None,
        typer.Option(
            metavar="T", parser=moment, help="What came before is left out; as for --at.", show_default=False
        ),
    ] = None,
    json: Json = False,
    html: HtmlOrOutput = None,
) -> int:
    """Say where the time and the GPU-hours of a run went.

    Every second is in one of eight categories – productive, rework, checkpoint, evaluation, start-up,
    stalled, down, unknown – and they sum to the time that passed. A step counts once: what was rolled back is
    rework. Besides: the effective share by window, MFU, how often the run was interrupted, how it came back.

    \b
    Example:
      train-ledger account runs/r42
      train-ledger account runs/r42 --since 2026-11-29T00:00:00+00:00 --json
      train-ledger account runs/r42 --html account.html
    """
    from train_ledger import config
    from train_ledger.cli.output import show, show_report, write_page
    from train_ledger.ops.account import account as account_of
    from train_ledger.ops.account import answer_of
    from train_ledger.render import as_json
    from train_ledger.render.accounts import report_of_accounts
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    settings = config.load(run_dir)
    accounts = account_of(run_dir, settings, at, since=since)
    answer = answer_of(accounts)
    share = accounts.effective.get("run")
    is_low = share is not None and share < settings.alerts.effective_fraction
    report = report_of_accounts(answer, tone="trouble" if is_low else "fine")
    if html is not None:
        write_page(html, report, "account", title=accounts.run, at=at)
    if json:
        show(as_json(answer))
    else:
        show_report(report)
    return ExitCode.NOTHING_WRONG if accounts.wall_s else ExitCode.CANNOT_TELL
