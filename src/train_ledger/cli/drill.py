"""`train-ledger drill hang`: would a hang of a job in your own environment be noticed?"""

from __future__ import annotations

from typing import Annotated

import typer

from train_ledger.cli.demo import Culprit, HangAt, Mode, NewRun, Ranks
from train_ledger.cli.options import Json

__all__ = ["drill_hang"]


def drill_hang(
    ranks: Ranks = 8,
    mode: Mode = "size",
    culprit: Culprit = 5,
    run: NewRun = None,
    hang_at: HangAt = 20,
    group: Annotated[
        str,
        typer.Option(metavar="GROUP", help="Where it leaves: at a collective of world, tp, dp or pp."),
    ] = "world",
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="LAYOUT",
            help="Sizes of the groups, as dp=2,tp=2,pp=2; data-parallel alone if none is needed.",
            show_default=False,
        ),
    ] = None,
    timeout_s: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=86_400,
            metavar="SECONDS",
            help="Time-out of the process groups; 600 if none.",
            show_default=False,
        ),
    ] = None,
    no_dump_path: Annotated[
        bool,
        typer.Option(
            "--no-dump-path",
            help="Tell torch no place for its dumps, wait for the time-out (30 s if none is given), and see "
            "where they fall and whether they outlive the job.",
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Plant a hang, and see whether it is named.

    Runs a torchrun job in this environment – over NCCL where each rank has a GPU, else over gloo – and says
    whether its hang was paged, whether the right rank was named, whether every rank's dump was there and how
    long gathering them took. Exit status 0: the planted rank was found and rightly named.

    \b
    Example:
      train-ledger drill hang --ranks 8 --mode sleep --culprit 5 --json
      train-ledger drill hang --layout dp=2,tp=2,pp=2 --group tp --mode order_swap
      train-ledger drill hang --no-dump-path --timeout-s 30
    """
    from train_ledger import chaos
    from train_ledger.cli.output import show

    plan = chaos.plan_of(
        mode,
        culprit,
        ranks,
        hang_at=hang_at,
        group=group,
        layout=layout,
        timeout_s=timeout_s,
        no_dump_path=no_dump_path,
    )
    return chaos.demo(run, plan, as_json=json, out=show)
