"""`train-ledger demo`: a real job hangs, and the rank that hung it is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from train_ledger.cli.leave import BadInputError
from train_ledger.cli.options import Json

__all__ = ["Culprit", "HangAt", "Mode", "NewRun", "Ranks", "demo", "plant"]

Culprit: TypeAlias = Annotated[int, typer.Option(min=0, help="The rank that leaves the common path.")]
Mode: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="MODE", help="How it leaves: sleep, loader, skip, type, size, abort, raise or lock_gil."
    ),
]
HangAt: TypeAlias = Annotated[int, typer.Option(min=1, max=100_000, help="The step at which it leaves.")]
Ranks: TypeAlias = Annotated[int, typer.Option(min=2, max=64, help="Ranks of the job.")]
NewRun: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--run", metavar="DIR", help="Run directory to make; under ./runs if none.", show_default=False
    ),
]


def demo(
    culprit: Culprit = 3,
    mode: Mode = "skip",
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
      train-ledger demo --culprit 0 --mode loader
    """
    return plant(culprit, mode, run, ranks, hang_at, json)


def plant(culprit: int, mode: str, run: Path | None, ranks: int, hang_at: int, json: bool) -> int:
    """Run the drill that `demo` and `drill hang` share."""
    from train_ledger import chaos
    from train_ledger.cli.output import show

    if mode not in chaos.MODES:
        raise BadInputError(f"--mode {mode} is not known; there are {', '.join(chaos.MODES)}")
    if culprit >= ranks:
        raise BadInputError(f"--culprit {culprit} is not one of the {ranks} ranks (0 to {ranks - 1})")
    return chaos.demo(run, culprit=culprit, mode=mode, hang_at=hang_at, ranks=ranks, as_json=json, out=show)
