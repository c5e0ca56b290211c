"""`train-ledger drill hang`: would a hang of a job in your own environment be noticed?"""

from __future__ import annotations

from train_ledger.cli.demo import Culprit, HangAt, Mode, NewRun, Ranks, plant
from train_ledger.cli.options import Json

__all__ = ["drill_hang"]


def drill_hang(
    ranks: Ranks = 4,
    mode: Mode = "skip",
    culprit: Culprit = 3,
    run: NewRun = None,
    hang_at: HangAt = 20,
    json: Json = False,
) -> int:
    """Plant a hang, and see whether it is named.

    Runs a torchrun job in this environment and checks that its hang is paged and rightly named.
    Exit status 0: the planted rank was found and rightly named.

    \b
    Example:
      train-ledger drill hang --ranks 8 --mode sleep --culprit 5 --json
    """
    return plant(culprit, mode, run, ranks, hang_at, json)
