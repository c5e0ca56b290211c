"""`train-ledger demo`: a real job hangs, and the rank that hung it is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from train_ledger.cli.options import Json

__all__ = ["Culprit", "HangAt", "Mode", "NewRun", "Ranks", "demo"]

Culprit: TypeAlias = Annotated[
    int, typer.Option(min=0, metavar="RANK", help="The rank that leaves the common path.")
]
Mode: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="MODE",
        help="How it leaves: sleep, loader, exhausted, skip, type, size, dtype, abort, order_swap, exception "
        "or lock_gil.",
    ),
]
HangAt: TypeAlias = Annotated[
    int, typer.Option(min=1, max=100_000, metavar="STEP", help="The step at which it leaves.")
]
Ranks: TypeAlias = Annotated[int, typer.Option(min=2, max=64, metavar="N", help="Ranks of the job.")]
NewRun: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--run", metavar="DIR", help="Run directory to make; under ./runs if none.", show_default=False
    ),
]


def demo(
    culprit: Culprit = 3,
    mode: Mode = "loader",
    run: NewRun = None,
    ranks: Ranks = 4,
    hang_at: HangAt = 20,
    json: Json = False,
) -> int:
    """Hang a real job here, and see it named.

    A small model trains on 4 ranks of this CPU until one of them drops out of a collective. Exit
    status 0 only where the named rank is the right one.

    \b
    Example:
      train-ledger demo
      train-ledger demo --culprit 0 --mode type
    """
    from train_ledger import chaos
    from train_ledger.cli.output import show

    plan = chaos.plan_of(mode, culprit, ranks, hang_at=hang_at)
    return chaos.demo(run, plan, as_json=json, out=show)
