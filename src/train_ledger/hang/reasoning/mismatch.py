"""Did the members of a group bring different things to the same sequence number?

Judged at the frontier alone, the lowest number at which anybody is pending: what lies behind it has no effect
yet. Operations, sizes and types are compared by majority; a tie accuses nobody. Differences that are legal –
what only a root brings, uneven all_to_all and all_gather – are no mismatch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from train_ledger.hang.dumps.entry import ALL_TO_ALL, Op
from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.splits import disagreement

__all__ = ["Mismatch", "find_mismatch"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """`ops` holds what each member brought; `odd` and `usual` are examples of both sides.

    `culprits` is empty where no side has the majority.
    """

    kind: str
    seq: int
    culprits: tuple[int, ...]
    ops: Mapping[int, Op]
    odd: Op
    usual: Op | None
    why: str = ""


_INPUTS_EQUAL = frozenset(
    {
        "all_reduce",
        "all_reduce_barrier",
        "allreduce_coalesced",
        "reduce",
        "broadcast",
        "_broadcast_oop",
        "_reduce_oop",
        "gather",
        "all_gather",
        "all_gather_into_tensor",
        "reduce_scatter",
        "reduce_scatter_tensor",
    }
)
_Siblings = Callable[[], Sequence[GroupView]]


def find_mismatch(view: GroupView, siblings: _Siblings = tuple, *, ended: bool = False) -> Mismatch | None:
    """The first difference at the group's frontier, looked for in operation, size, type.

    A tie is settled by what the `siblings`, the groups of the same kind, brought to the same number. In a job
    that `ended`, operations that failed are no longer pending: there the last number that all
    members reached is looked at.
    """
    frontier = _frontier(view, ended)
    if frontier is None:
        return None
    ops = {rank: op for rank, standing in view.standings.items() if (op := standing.op(frontier))}
    if len(ops) < 2:
        return None
    return (
        _vote("collective_type_mismatch", frontier, ops, lambda op: op.name, siblings)
        or _uneven_gather_or_sizes(view, frontier, ops, siblings)
        or _splits(view, frontier, ops)
        or _vote("collective_dtype_mismatch", frontier, ops, _dtypes, siblings)
    )


def _frontier(view: GroupView, ended: bool) -> int | None:
    pending = [it.lowest_pending for it in view.standings.values() if it.lowest_pending is not None]
    if pending or not ended:
        return min(pending, default=None)
    last = [held.highest for it in view.standings.values() if (held := it.held) and held.highest is not None]
    return min(last, default=None)


_Signature = Callable[[Op], Hashable | None]


def _vote(
    kind: str, seq: int, ops: Mapping[int, Op], signature: _Signature, siblings: _Siblings
) -> Mismatch | None:
    """A mismatch where the signatures differ; operations without a signature do not vote."""
    signed = {rank: sign for rank, op in ops.items() if (sign := signature(op)) is not None}
    usual, why = _majority(signed.values()), ""
    if len(set(signed.values())) < 2:
        return None
    if usual is None:
        usual = _majority(_elsewhere(seq, signature, siblings))
        why = "a tie in this group; the other groups of its kind brought to this number what the rest did"
    if usual is None or usual not in signed.values():
        first, *others = sorted(signed)
        other = next(rank for rank in others if signed[rank] != signed[first])
        return Mismatch(kind, seq, (), ops, ops[first], ops[other], "no side has the majority")
    culprits = tuple(sorted(rank for rank, sign in signed.items() if sign != usual))
    example = next(ops[rank] for rank, sign in signed.items() if sign == usual)
    return Mismatch(kind, seq, culprits, ops, ops[culprits[0]], example, why)


def _majority(signatures: Iterable[Hashable]) -> Hashable | None:
    """What more than half of them are; None where there is no such."""
    counts = Counter(signatures)
    most, votes = counts.most_common(1)[0] if counts else (None, 0)
    return most if votes * 2 > counts.total() else None


def _elsewhere(seq: int, signature: _Signature, siblings: _Siblings) -> list[Hashable]:
    """What the members of other groups brought to that number; nothing where there are fewer than two."""
    others = siblings()
    found = [
        sign
        for view in others
        for standing in view.standings.values()
        if (op := standing.op(seq)) and (sign := signature(op)) is not None
    ]
    return found if len(others) >= 2 else []


def _uneven_gather_or_sizes(
    view: GroupView, seq: int, ops: Mapping[int, Op], siblings: _Siblings
) -> Mismatch | None:
    if all(op.name == "all_gather" for op in ops.values()) and _is_legal_uneven_gather(view, ops):
        return None
    return _vote("size_or_syntax_mismatch", seq, ops, _size, siblings)


def _is_legal_uneven_gather(view: GroupView, ops: Mapping[int, Op]) -> bool:
    """all_gather into a list may be uneven: each member's input is its own entry of everybody's output."""
    outputs = {op.output_sizes for op in ops.values()}
    if len(outputs) != 1:
        return False
    listed = next(iter(outputs))
    place = {rank: index for index, rank in enumerate(view.group.ranks)}
    return len(listed) == len(place) and all(
        op.input_sizes[:1] == (listed[place[rank]],) for rank, op in ops.items()
    )


def _size(op: Op) -> Hashable | None:
    """The numbers of elements, or of coalesced parts, that must be equal on all; shapes may differ."""
    if op.name == "scatter":
        return _elements(op.output_sizes)
    if op.name in _INPUTS_EQUAL:
        return _elements(op.input_sizes)
    return (op.parts,) if op.name.endswith("_coalesced") else None


def _elements(sizes: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | None:
    """None where no tensor was recorded, as for members that are not the root."""
    return tuple(prod(shape) for shape in sizes) or None


def _splits(view: GroupView, seq: int, ops: Mapping[int, Op]) -> Mismatch | None:
    if any(op.name not in ALL_TO_ALL for op in ops.values()):
        return None
    found = disagreement(ops, view.group.ranks)
    if found is None:
        return None
    at_fault, why = found
    odd = at_fault[0] if at_fault else min(ops)
    usual = next(op for rank, op in sorted(ops.items()) if rank != odd)
    return Mismatch("size_or_syntax_mismatch", seq, at_fault, ops, ops[odd], usual, why)


def _dtypes(op: Op) -> Hashable | None:
    return (op.output_dtypes if op.name == "scatter" else op.input_dtypes) or None
