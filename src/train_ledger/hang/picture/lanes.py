"""What did each rank issue last, over all its groups, in its own order?

The numbers of one group say nothing of another; here the last operations of a rank stand in the order in
which it issued them. Lanes are laid upon each other at the last operation before the one at which it hangs,
and ranks with equal lanes share one – those of different groups of one kind too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from train_ledger.hang.dumps.dump import Op
from train_ledger.hang.picture.table import state_of
from train_ledger.hang.reasoning.groups import GroupView, is_telling
from train_ledger.hang.reasoning.roots import Root
from train_ledger.render.picture import Cell, Lane, Lanes

__all__ = ["lanes"]

_BEFORE = 3
_AFTER = 4
_LANES = 32


class _Issued(NamedTuple):
    """One operation of a rank, with the kind of its group."""

    kind: str
    op: Op


def lanes(root: Root, views: Sequence[GroupView], accused: frozenset[int]) -> Lanes | None:
    """The lanes of all ranks around the place at which `root` shows; None where there is nothing to show."""
    histories = _histories(views)
    merged: dict[Hashable, list[int]] = {}
    shown: dict[Hashable, list[_Issued | None]] = {}
    for rank, history in sorted(histories.items()):
        window = _window(history, _anchor(history, root))
        key = (rank in accused, *(_key(it) for it in window))
        merged.setdefault(key, []).append(rank)
        shown.setdefault(key, window)
    if not merged:
        return None
    for rank in accused.difference(histories):
        merged.setdefault(None, []).append(rank)
        shown[None] = []
    order = sorted(merged, key=lambda key: (merged[key][0] not in accused, -len(merged[key]), merged[key]))
    kept = tuple(
        Lane(tuple(sorted(merged[key])), _cells(shown[key]), merged[key][0] in accused)
        for key in order[:_LANES]
    )
    return _trimmed(Lanes(kept, _BEFORE, tuple(_notes(merged, order))))


def _trimmed(lanes: Lanes) -> Lanes:
    """Without the places at both ends at which nobody has anything; the anchor stays."""
    filled = [place for lane in lanes.lanes for place, cell in enumerate(lane.cells) if cell]
    first, last = min(lanes.anchor, *filled), max(lanes.anchor, *filled)
    kept = tuple(replace(lane, cells=lane.cells[first : last + 1]) for lane in lanes.lanes)
    return replace(lanes, lanes=kept, anchor=lanes.anchor - first)


def _notes(merged: Mapping[Hashable, Sequence[int]], order: Sequence[Hashable]) -> list[str]:
    left_out = sum(len(merged[key]) for key in order[_LANES:])
    return [f"{left_out} more ranks in {len(order) - _LANES} more lanes"] if left_out else []


def _histories(views: Sequence[GroupView]) -> dict[int, list[_Issued]]:
    """By rank what its dump keeps, in the order of issue; without it where the dump does not number it."""
    kinds = Counter((rank, view.group.desc) for view in views for rank in view.standings)
    found: dict[int, list[_Issued]] = {}
    for view in views:
        telling = is_telling(view.group.desc)
        for rank, standing in view.standings.items():
            if standing.held is None:
                continue
            kind = view.group.desc if telling and kinds[rank, view.group.desc] == 1 else view.group.name
            ops = (*standing.held.ops, *standing.held.p2p)
            found.setdefault(rank, []).extend(_Issued(kind, op) for op in ops)
    for history in found.values():
        history.sort(key=lambda it: (it.op.record, it.op.seq))
    return found


def _anchor(history: Sequence[_Issued], root: Root) -> int:
    """The place of the last operation before the number at which the root shows; else that of the newest."""
    kind = {root.view.group.desc, root.view.group.name} - {""}
    mine = [
        (it.op.seq, place)
        for place, it in enumerate(history)
        if it.kind in kind and it.op.source is None and not root.p2p
    ]
    before = [place for seq, place in mine if seq < root.seq]
    after = [place for seq, place in mine if seq >= root.seq]
    return before[-1] if before else after[0] - 1 if after else len(history) - 1


def _window(history: Sequence[_Issued], anchor: int) -> list[_Issued | None]:
    places = range(anchor - _BEFORE, anchor + _AFTER + 1)
    return [history[place] if 0 <= place < len(history) else None for place in places]


def _key(issued: _Issued | None) -> Hashable:
    if issued is None:
        return None
    kind, op = issued
    return kind, op.name, op.seq, op.done, op.source is None


def _cells(window: Sequence[_Issued | None]) -> tuple[Cell | None, ...]:
    if window:
        return tuple(_cell(it) for it in window)
    nothing = Cell("no entry to be read", "absent")
    return (*[None] * _BEFORE, nothing, *[None] * _AFTER)


def _cell(issued: _Issued | None) -> Cell | None:
    if issued is None:
        return None
    kind, op = issued
    return Cell(f"{kind} {op.seq}: {op.name}, {state_of(op)}", "done" if op.done else "pending")
