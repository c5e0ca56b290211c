"""Which ranks does the job have?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from train_ledger.hang.dumps.dump import Dump
from train_ledger.hang.dumps.group_table import MOST_RANKS, ranks_in

__all__ = ["can_be_a_world", "world_of"]


def can_be_a_world(world_size: int) -> bool:
    return 0 < world_size <= MOST_RANKS


def world_of(dumps: Sequence[Dump], others: Iterable[int], world_size: int | None) -> tuple[int, ...]:
    """All ranks of the job: by its world size, else up to the highest rank that anything speaks of.

    A world size that cannot be, and ranks that cannot be, are passed over.
    """
    if world_size and can_be_a_world(world_size):
        return tuple(range(world_size))
    known = {dump.rank for dump in dumps} | {rank for rank in others if 0 <= rank < MOST_RANKS}
    for texts in {text for dump in dumps for _, text in dump.config.values()}:
        known.update(ranks_in(texts))
    return tuple(range(max(known) + 1)) if known else ()
