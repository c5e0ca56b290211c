"""`train-ledger diagnose`: what is wrong with this run?"""

from __future__ import annotations

from train_ledger.cli.options import At, Html, Json, Run

__all__ = ["diagnose"]


def diagnose(run: Run, at: At = None, json: Json = False, html: Html = None) -> int:
    """Say what is wrong with a run, and why.

    Who is to blame, if anybody, on what evidence, what was ruled out, and what to run next. A run whose
    ranks write no signals is known by its logs, in logs/ and structured_logs/.

    \b
    Example:
      train-ledger diagnose runs/r42
      train-ledger diagnose runs/r42 --at 2026-11-30T03:12:00+00:00 --json
    """
    from train_ledger import config, ops
    from train_ledger.cli.output import answered
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    settings = config.load(run_dir)
    answer, picture = ops.examine(run_dir, settings, at=at)
    currency = settings.cost.currency
    return answered(answer, json=json, html=html, title=str(run), currency=currency, picture=picture)
