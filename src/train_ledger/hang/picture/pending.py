"""In what is each rank pending, over all its groups?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train_ledger.hang.dumps.dump import Op
from train_ledger.hang.reasoning.groups import GroupView, Standing, is_telling

__all__ = ["ends", "member", "pending_elsewhere"]


def pending_elsewhere(views: Iterable[GroupView]) -> dict[int, dict[str, str]]:
    """For each rank what it is pending in, in words, by group; its sends and receives count as one more."""
    found: dict[int, dict[str, str]] = {}
    for view in views:
        kind = f"its {view.group.desc} group" if is_telling(view.group.desc) else view.label
        for rank in view.waiting:
            for label, text in _lowest(view, view.standings[rank]):
                found.setdefault(rank, {})[label] = f"{text} of {kind}"
    return found


def _lowest(view: GroupView, standing: Standing) -> Iterator[tuple[str, str]]:
    seq = standing.lowest_pending
    if seq is not None and (op := standing.op(seq)):
        yield view.label, f"{op.name}, number {seq}"
    if standing.held and standing.held.p2p:
        op = standing.held.p2p[0]
        yield f"p2p of {view.label}", f"{op.name} {ends(view, op)}, number {op.seq}"


def ends(view: GroupView, op: Op) -> str:
    """Sender and receiver in ranks of the job: 3 to 4."""
    source, target = (member(view, place) for place in (op.source, op.target))
    return f"{'any' if source is None else source} to {'any' if target is None else target}"


def member(view: GroupView, place: int | None) -> int | None:
    ranks = view.group.ranks
    return ranks[place] if place is not None and 0 <= place < len(ranks) else None
