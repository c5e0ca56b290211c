"""`train-ledger drill slow`: would what makes a job slow in your own environment be rightly named?"""

from __future__ import annotations

from typing import Annotated

import typer

from train_ledger.cli.demo import NewRun
from train_ledger.cli.options import Json

__all__ = ["drill_slow"]

_MODES = ("compute", "data", "logging", "none")


def drill_slow(
    mode: Annotated[
        str, typer.Option(metavar="MODE", help=f"What becomes slow: {', '.join(_MODES)}.")
    ] = "compute",
    culprit: Annotated[int, typer.Option(min=0, max=3, help="The rank that computes or fetches longer.")] = 2,
    run: NewRun = None,
    json: Json = False,
) -> int:
    """Make a job slow, and see whether the cause is named.

    Runs a torchrun job of four ranks over gloo, of which one computes longer from some step on, or fetches
    its data longer, or all write thousands of lines a step, or nothing happens at all; then asks who drags
    and why. Takes about half a minute. Exit status 0: cause and rank were rightly named.

    \b
    Example:
      train-ledger drill slow --mode compute --culprit 2
      train-ledger drill slow --mode none --json
    """
    import importlib.util

    from train_ledger.chaos.slow_drill import slow_drill
    from train_ledger.cli.leave import BadInputError
    from train_ledger.cli.output import show

    if mode not in _MODES:
        raise BadInputError(f"--mode {mode}: is none of {', '.join(_MODES)}")
    if importlib.util.find_spec("torch") is None:
        raise BadInputError(
            "the drill trains with torch, which is not installed: pip install 'train-ledger[demo]'"
        )
    return slow_drill(mode, culprit, folder=run, as_json=json, out=show)
