"""Where do the ways of the ranks part?

The stacks of all ranks as one prefix tree, outermost call first, as STAT (LLNL) draws those of MPI jobs: what
all have in common stands at the root, and each parting names the ranks that went each way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from train_ledger.hang.stacks import StackGroup

__all__ = ["StackNode", "tree_of"]

_DEEPEST = 64
"""Partings below each other; what parts further down is not told apart any more."""


@dataclass(frozen=True, slots=True)
class StackNode:
    """Calls that some ranks have in common, outermost first, and how they go on from there.

    `children` are ordered as whoever looks for the odd one reads: the fewest ranks first. The ranks that
    stand in the last of `frames` themselves are those of no child.
    """

    frames: tuple[str, ...]
    ranks: tuple[int, ...]
    children: tuple[StackNode, ...] = ()


_Way = tuple[tuple[str, ...], tuple[int, ...]]


def tree_of(groups: Iterable[StackGroup]) -> StackNode:
    """The tree of merged stacks; its root has no frames where the outermost calls differ already."""
    ways = [(group.frames[::-1], group.ranks) for group in groups]
    return _node(ways, 0, 0)


def _node(ways: Sequence[_Way], at: int, depth: int) -> StackNode:
    shared = _shared(ways, at)
    frames = ways[0][0][at:shared] if ways else ()
    if len(ways) < 2 or depth == _DEEPEST:
        return StackNode(frames, _all_ranks(ways))
    parted: dict[str, list[_Way]] = {}
    for way in ways:
        if len(way[0]) > shared:
            parted.setdefault(way[0][shared], []).append(way)
    children = (_node(some, shared, depth + 1) for some in parted.values())
    return StackNode(frames, _all_ranks(ways), tuple(sorted(children, key=_odd_first)))


def _shared(ways: Sequence[_Way], at: int) -> int:
    """How many outermost calls all ways have in common."""
    if not ways:
        return at
    first, rest = ways[0][0], [frames for frames, _ in ways[1:]]
    end = min((len(frames) for frames, _ in ways), default=at)
    for frames in rest:
        end = next((index for index in range(at, end) if frames[index] != first[index]), end)
    return end


def _all_ranks(ways: Sequence[_Way]) -> tuple[int, ...]:
    if len(ways) == 1:
        return ways[0][1]
    return tuple(sorted(rank for _, ranks in ways for rank in ranks))


def _odd_first(node: StackNode) -> tuple[int, tuple[int, ...]]:
    return len(node.ranks), node.ranks
