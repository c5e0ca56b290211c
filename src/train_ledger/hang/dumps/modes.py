"""Do the dumps of a job hold active entries alone?

One setting holds for all its ranks. A dump in which nothing is done may be of active entries alone, or its
ring is full of pending ones; where another rank's dump shows what is done, or that older ones fell off its
ring, it is the latter.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from train_ledger.hang.dumps.dump import Dump
from train_ledger.hang.dumps.held import Held

__all__ = ["of_one_mode", "without_ended_batches"]


def of_one_mode(dumps: Sequence[Dump]) -> Sequence[Dump]:
    """The same dumps; those that were wrongly taken for active entries alone have lost older ones."""
    if not any(dump.active_only and dump.entries for dump in dumps) or not any(map(_holds_all, dumps)):
        return dumps
    return [_wrapped(dump) if dump.active_only and dump.entries else dump for dump in dumps]


def _holds_all(dump: Dump) -> bool:
    """Whether it is certainly none of active entries alone."""
    if dump.wrapped and dump.cut is None:
        return True
    return any(op.done for held in dump.groups for op in (*held.ops[:1], *held.p2p_done[:1]))


def _wrapped(dump: Dump) -> Dump:
    groups = tuple(replace(held, exact=held.lowest_pending is None) for held in dump.groups)
    return replace(dump, active_only=False, wrapped=True, groups=groups)


def without_ended_batches(dumps: Sequence[Dump]) -> Sequence[Dump]:
    """The same dumps; where a group's peers batch their sends and receives, a lone one is a batch, too.

    It never says that it is over, and its closing entry is not in a dump of active entries alone; only the
    last that a rank recorded may be open.
    """
    batching = {name for dump in dumps if dump.active_only for name in dump.batching}
    if not batching:
        return dumps
    return [_without(dump, batching) if dump.active_only else dump for dump in dumps]


def _without(dump: Dump, batching: set[str]) -> Dump:
    last = dump.last.record if dump.last else -1
    concerned = batching.difference(dump.batching)
    groups = tuple(_last_alone(held, last) if held.name in concerned else held for held in dump.groups)
    return replace(dump, groups=groups)


def _last_alone(held: Held, last: int) -> Held:
    return replace(held, p2p=tuple(op for op in held.p2p if op.record == last))
