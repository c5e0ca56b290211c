"""`train-ledger cost`: what does the run cost, and what would be worth mending first?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import At, Html, Json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from train_ledger.ledger.costs import Costs, Figure

__all__ = ["cost"]


def cost(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="Run directory; none: a job as assumed.", show_default=False),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,…",
            help="Figures that go before the measured ones, like world_size=1024,price=2.5,interval=24min.",
            show_default=False,
        ),
    ] = None,
    at: At = None,
    json: Json = False,
    html: Html = None,
) -> int:
    """Say what a GPU-hour, a hang and an MFU point cost.

    Also the checkpoint interval by Young and Daly, and what to mend first. By the run's own figures where it
    has them; each figure says whether it was measured, configured, given or assumed. Exit status: 3 where
    nothing is known of the run.

    \b
    Example:
      train-ledger cost runs/r42
      train-ledger cost runs/r42 --assume price=2.1
      train-ledger cost --assume world_size=1024,price=2.5,mtbi=3h,checkpoint=45,interval=24min
    """
    from train_ledger import render
    from train_ledger.answer import to_json
    from train_ledger.cli.cost_shown import report_of_costs
    from train_ledger.cli.leave import BadInputError
    from train_ledger.cli.output import show, show_report, write_page
    from train_ledger.ledger.costs import FigureError, given

    try:
        figures = given(",".join(assume or []))
    except FigureError as error:
        raise BadInputError(str(error)) from None
    if run is None and not figures:
        raise BadInputError("cost needs a run directory, or --assume with the figures of a job")
    found = _costs(run, figures, at)
    if html is not None:
        write_page(html, report_of_costs(found), "cost", title=found.run_name, at=at)
    if json:
        show(render.as_json(to_json(found)))
    else:
        show_report(report_of_costs(found))
    return ExitCode.NOTHING_WRONG if found.run is None or found.run.is_known else ExitCode.CANNOT_TELL


def _costs(run: Path | None, figures: Mapping[str, Figure], at: float | None) -> Costs:
    if run is None:
        from train_ledger.ledger.costs import costs

        return costs(given=figures)
    from train_ledger import config
    from train_ledger.ops.cost import cost as cost_of
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    return cost_of(run_dir, config.load(run_dir), given=figures, at=at)
