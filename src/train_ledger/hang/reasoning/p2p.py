"""Which send or receive waits for its other side, and which do not fit?

Sends and receives are paired by (source, target), the first with the first. Where both dumps hold all that
was ever posted, each is counted from the beginning; else those that are pending are. A send waits for a
partner that has not posted the receive, and the reverse; a receive from any source names nobody. Where both
sides are there they must be of one size and type; which side is wrong, a pair does not tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from train_ledger.hang.dumps.entry import Op
from train_ledger.hang.dumps.held import KEPT_P2P, KEPT_PAIRS, Held
from train_ledger.hang.reasoning.groups import GroupView, Standing
from train_ledger.hang.reasoning.laggards import Wait
from train_ledger.hang.reasoning.mismatch import Mismatch

__all__ = ["p2p_mismatches", "p2p_waits"]

_ANY = -1


@dataclass(frozen=True, slots=True)
class _Side:
    """What one rank posted of one pair: `pending` from number `first` on, `done` right before it.

    `posted` is None where the dump does not hold all, or what was read of it not the count of this pair.
    """

    rank: int
    standing: Standing | None
    pending: Sequence[Op]
    done: Sequence[Op]
    posted: int | None

    def numbered(self, counts: bool) -> dict[int, Op]:
        first = (self.posted or 0) - len(self.pending) if counts else 0
        before = {first - len(self.done) + place: op for place, op in enumerate(self.done)} if counts else {}
        return before | {first + place: op for place, op in enumerate(self.pending)}


def p2p_waits(view: GroupView) -> Iterator[Wait]:
    """The pending sends and receives of a group: those whose other side is missing, then those paired."""
    for near, far, is_send, op in _unpaired(view):
        partner = far.standing
        if partner is None or partner.cut or _may_be_lost(partner, op) or _is_uncounted(near, far):
            yield Wait(view, op.seq, op, (near.rank,), unknown=(far.rank,), p2p=True)
        elif not is_send or not _receives_from_any(far):
            yield Wait(view, op.seq, op, (near.rank,), (far.rank,), p2p=True)
    for rank, standing in view.standings.items():
        for op in standing.held.p2p if standing.held else ():
            if _ANY in (op.source, op.target):
                yield Wait(view, op.seq, op, (rank,), p2p=True)
    for sender, receiver, send, receive in _paired(view):
        waiters = tuple(
            sorted({side.rank for side, op in ((sender, send), (receiver, receive)) if not op.done})
        )
        yield Wait(view, send.seq, receive if send.done else send, waiters, p2p=True, paired=True)


def p2p_mismatches(view: GroupView) -> Iterator[Mismatch]:
    """Of each pair of ranks the first send whose receive is of another size or type."""
    told: set[tuple[int, int]] = set()
    for sender, receiver, send, receive in _paired(view):
        pair = (sender.rank, receiver.rank)
        if pair in told or pair[0] == pair[1] or not (kind := _differ(send, receive)):
            continue
        told.add(pair)
        why = f"rank {pair[0]} sends what rank {pair[1]} does not expect; a pair does not tell who is wrong"
        op = receive if send.done else send
        yield Mismatch(kind, op.seq, (), {pair[0]: send, pair[1]: receive}, send, receive, why)


def _differ(send: Op, receive: Op) -> str | None:
    sizes, expected = (op.input_sizes or op.output_sizes for op in (send, receive))
    if sizes and expected and [prod(it) for it in sizes] != [prod(it) for it in expected]:
        return "size_or_syntax_mismatch"
    types, wanted = (op.input_dtypes or op.output_dtypes for op in (send, receive))
    return "collective_dtype_mismatch" if types and wanted and types != wanted else None


def _unpaired(view: GroupView) -> Iterator[tuple[_Side, _Side, bool, Op]]:
    """(this side, the other, whether it sends, the first operation whose other side is not there)."""
    for sender, receiver in _pairs(view):
        counts = sender.posted is not None and receiver.posted is not None
        sends, receives = sender.numbered(counts), receiver.numbered(counts)
        for near, far, is_send, mine, other in (
            (sender, receiver, True, sends, receives),
            (receiver, sender, False, receives, sends),
        ):
            there = far.posted if counts and far.posted is not None else len(other)
            lacking = [number for number, op in mine.items() if not op.done and number >= there]
            if lacking:
                yield near, far, is_send, mine[min(lacking)]


def _paired(view: GroupView) -> Iterator[tuple[_Side, _Side, Op, Op]]:
    """The first send of each pair of ranks that is not over on both sides, with its receive."""
    for sender, receiver in _pairs(view):
        counts = sender.posted is not None and receiver.posted is not None
        sends, receives = sender.numbered(counts), receiver.numbered(counts)
        both = [number for number in sends if number in receives]
        open_ones = [it for it in both if not (sends[it].done and receives[it].done)]
        if open_ones:
            first = min(open_ones)
            yield sender, receiver, sends[first], receives[first]


def _pairs(view: GroupView) -> Iterator[tuple[_Side, _Side]]:
    """(sender, receiver) of every pair of which anything is pending."""
    ranks = view.group.ranks
    sides: dict[tuple[int, int], None] = {}
    for standing in view.standings.values():
        for op in standing.held.p2p if standing.held else ():
            if op.source is not None and op.target is not None:
                sides[op.source, op.target] = None
    for source, target in sorted(sides):
        if 0 <= source < len(ranks) and 0 <= target < len(ranks):
            yield (
                _side(view, ranks[source], source, target, sends=True),
                _side(view, ranks[target], source, target, sends=False),
            )


def _side(view: GroupView, rank: int, source: int, target: int, *, sends: bool) -> _Side:
    standing = view.standings.get(rank)
    held = standing.held if standing else None
    if standing is None or held is None:
        return _Side(rank, standing, (), (), 0 if standing and standing.holds_all else None)
    name = f"send {source}->{target}" if sends else f"recv {target}<-{source}"
    posted = _posted(held, name) if standing.holds_all else None
    mine = (source, target, sends)
    return _Side(rank, standing, _of(held.p2p, mine), _of(held.p2p_done, mine), posted)


def _posted(held: Held, name: str) -> int | None:
    """None where there are more pairs, or more pending, than a reader hands on."""
    if name not in held.posted:
        return 0 if len(held.posted) < KEPT_PAIRS else None
    return held.posted[name] if len(held.p2p) < KEPT_P2P else None


def _is_uncounted(near: _Side, far: _Side) -> bool:
    """Whether the other side may be among what the reader of a dump with very many did not hand on."""
    return far.posted != 0 and (_is_full(near) or _is_full(far))


def _is_full(side: _Side) -> bool:
    held = side.standing.held if side.standing else None
    return (
        held is not None
        and side.posted is None
        and (len(held.p2p) >= KEPT_P2P or len(held.posted) >= KEPT_PAIRS)
    )


def _of(ops: Iterable[Op], side: tuple[int, int, bool]) -> list[Op]:
    return [op for op in ops if (op.source, op.target, op.sends) == side]


def _may_be_lost(partner: Standing, op: Op) -> bool:
    """Whether the other side can have fallen off the partner's ring."""
    return partner.wrapped and (partner.held is None or partner.since_ns > op.created_ns)


def _receives_from_any(side: _Side) -> bool:
    held = side.standing.held if side.standing else None
    return held is not None and any(op.source == _ANY for op in held.p2p)
