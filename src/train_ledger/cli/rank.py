"""`train-ledger rank`: what is this one rank doing?"""

from __future__ import annotations

from typing import Annotated

import typer

from train_ledger.cli.options import At, Json, Run

__all__ = ["rank"]

_LARGEST = (1 << 20) - 1


def rank(
    run: Run,
    number: Annotated[
        int, typer.Argument(metavar="RANK", min=0, max=_LARGEST, help="Which rank.", show_default=False)
    ],
    at: At = None,
    json: Json = False,
) -> int:
    """Say what one rank is doing: where, since when, in what.

    Its host, GPU, rack and process, its step beside the run's, its phase, the last lines of its signals and
    its log, its stack, its last collective, the state of its GPU, and who waits for it. Exit status: 0 it
    goes on, 1 it, its GPU or the run does not, 3 nothing that it wrote is known.

    \b
    Example:
      train-ledger rank runs/r42 517
      train-ledger rank runs/r42 517 --at 2026-11-30T03:12:00+00:00 --json
    """
    from train_ledger import config
    from train_ledger.answer import to_json
    from train_ledger.cli.output import show, show_report
    from train_ledger.ops.rank import exit_code_of, look_at, report_of_rank
    from train_ledger.render import as_json
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    answer = look_at(run_dir, config.load(run_dir), number, at=at)
    if json:
        show(as_json(to_json(answer)))
    else:
        show_report(report_of_rank(answer))
    return exit_code_of(answer)
