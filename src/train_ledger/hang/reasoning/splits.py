"""Do the members of an all_to_all agree on what goes from whom to whom?

What member i sends to member j must be what j takes from i. Where every member's split sizes are recorded, or
a tensor for each peer, the pairs that disagree are named; without, the totals alone can be compared. A pair
does not tell which side is wrong: only a member that disagrees with two or more, or with itself, and is in
every pair that disagrees, is accused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from train_ledger.hang.dumps.entry import Op

__all__ = ["Disagreement", "disagreement"]

_SHOWN = 4
_MOST_COMPARED = 2048
"""Members; pairs are as many as their square."""

Disagreement = tuple[tuple[int, ...], str]
"""(the ranks at fault, in words)."""


def disagreement(ops: Mapping[int, Op], ranks: Sequence[int]) -> Disagreement | None:
    """What does not fit among what the members, listed in `ranks`, brought; None where all fits."""
    given = {rank: _parts(op.input_splits, op.input_sizes, len(ranks)) for rank, op in ops.items()}
    taken = {rank: _parts(op.output_splits, op.output_sizes, len(ranks)) for rank, op in ops.items()}
    place = {rank: index for index, rank in enumerate(ranks)}
    pairs = (
        (source, target, mine[place[target]], theirs[place[source]])
        for source, mine in given.items()
        for target, theirs in taken.items()
        if mine and theirs and mine[place[target]] != theirs[place[source]]
    )
    if found := _in_words(pairs):
        return found
    has_all = len(ops) == len(ranks) and all(op.input_sizes and op.output_sizes for op in ops.values())
    return _totals(ops) if has_all and not all((*given.values(), *taken.values())) else None


def _parts(splits: Sequence[int], sizes: Sequence[Sequence[int]], world: int) -> Sequence[int]:
    """What goes to or comes from each member; empty where it is not recorded."""
    if world > _MOST_COMPARED:
        return ()
    if len(splits) == world:
        return splits
    return [prod(shape) for shape in sizes] if len(sizes) == world > 1 else ()


def _in_words(pairs: Iterable[tuple[int, int, int, int]]) -> Disagreement | None:
    """None where there are no pairs; of millions none is kept but the first few."""
    common: set[int] | None = None
    involved: set[int] = set()
    with_itself, count, told = False, 0, []
    for source, target, sent, expected in pairs:
        side = {source, target}
        common = side if common is None else common & side
        involved |= side
        with_itself |= source == target
        count += 1
        if count <= _SHOWN:
            told.append(f"rank {source} sends {sent} to rank {target}, which expects {expected}")
    if common is None:
        return None
    at_fault = tuple(common) if len(common) == 1 and (len(involved) > 2 or with_itself) else ()
    more = count - len(told)
    why = "; ".join((*told, *([f"and {more} more pairs"] if more else [])))
    return at_fault, why if at_fault else f"{why}; a pair does not tell who is wrong"


def _totals(ops: Mapping[int, Op]) -> Disagreement | None:
    given = sum(prod(shape) for op in ops.values() for shape in op.input_sizes)
    taken = sum(prod(shape) for op in ops.values() for shape in op.output_sizes)
    if given == taken:
        return None
    return (), f"together the members send {given} elements and expect {taken}; the pair is not recorded"
