"""Whose order of operations departs from its peers', when ranks wait for each other?

In a circle of waits everybody waits for somebody, so absence tells nothing. What tells is the order: between
two operations of one kind of group, a rank issues so many in each other kind, step after step, and so do its
peers. Who left one out, or took one before its turn, has another count there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from train_ledger.hang.dumps.entry import Op
from train_ledger.hang.reasoning.groups import GroupView, is_telling
from train_ledger.hang.reasoning.laggards import Wait

__all__ = ["Orders"]

_Step = Mapping[str, int]
"""For each other kind of group, how many operations lie between two successive ones of this kind."""
_History = Mapping[str, Sequence[Op]]
"""What a rank keeps of each kind of group that it is a member of."""


_Kinds = Mapping[tuple[int, int], str]


def _kinds(views: Sequence[GroupView]) -> _Kinds:
    """(rank, view) → its kind: its description; its name, where the rank is in two of them."""
    groups = Counter((rank, view.group.desc) for view in views for rank in view.standings)
    return {
        (rank, id(view)): view.group.desc
        if groups[rank, view.group.desc] == 1 and is_telling(view.group.desc)
        else view.group.name
        for view in views
        for rank in view.standings
    }


def _histories(views: Sequence[GroupView], kinds: _Kinds) -> dict[int, dict[str, Sequence[Op]]]:
    """What each rank whose dump is whole keeps, by kind."""
    histories: dict[int, dict[str, Sequence[Op]]] = {}
    for view in views:
        for rank, standing in view.standings.items():
            if not standing.cut and (standing.held or standing.holds_all):
                histories.setdefault(rank, {})[kinds[rank, id(view)]] = standing.held_ops
    return histories


class Orders:
    """The steps of all ranks in these groups; each is counted once, and none before it is asked for."""

    def __init__(self, views: Sequence[GroupView]) -> None:
        self._views = views
        self._steps: dict[tuple[int, str, int], _Step] = {}
        self._usual: dict[tuple[str, int], _Step] = {}

    @cached_property
    def _kinds(self) -> _Kinds:
        return _kinds(self._views)

    @cached_property
    def _histories(self) -> Mapping[int, _History]:
        return _histories(self._views, self._kinds)

    def departures(self, place: Mapping[int, Wait]) -> dict[int, str]:
        """Of the ranks of a circle, each with its wait, those that left the common order, and how.

        Empty where none or most of them did.
        """
        odd = {
            rank: how
            for rank, wait in sorted(place.items())
            if not wait.p2p and (how := self._departure(rank, wait, self._kinds[rank, id(wait.view)]))
        }
        return odd if len(odd) * 2 <= len(place) else {}

    def _departure(self, rank: int, wait: Wait, kind: str) -> str | None:
        """In words, where its step to its place is neither that of its peers nor one that it took before.

        Before means from an operation like the one that it came from: in a step of training many follow each
        other, and each stage of a pipeline has its own order. Where peers have no common step, its own tells.
        """
        usual = self._common(kind, wait.seq)
        odd = []
        for other, count in self._step(rank, kind, wait.seq).items():
            before = self._before(rank, kind, wait.seq, other)
            expected = usual.get(other, before[-1] if before else count)
            known = count in (expected, *before) or self._differed_before(rank, kind, wait.seq, other)
            odd += [] if known else [f"{count} in {other} where {expected} are usual"]
        if not odd:
            return None
        between = f"between numbers {wait.seq - 1} and {wait.seq} of {wait.view.label}"
        return f"{between} rank {rank} issued {', '.join(odd)}"

    def _before(self, rank: int, kind: str, seq: int, other: str) -> list[int]:
        """How many in the other kind it issued when it last came from such an operation."""
        ops = {op.seq: (op.name, op.input_sizes) for op in self._histories.get(rank, {}).get(kind, ())}
        alike = [
            number + 1 for number, shape in ops.items() if number < seq - 1 and shape == ops.get(seq - 1)
        ]
        counts = [self._step(rank, kind, number).get(other) for number in sorted(alike)]
        return [count for count in counts if count is not None]

    def _step(self, rank: int, kind: str, seq: int) -> _Step:
        key = (rank, kind, seq)
        if key not in self._steps:
            self._steps[key] = _step(self._histories.get(rank, {}), kind, seq)
        return self._steps[key]

    def _common(self, kind: str, seq: int) -> _Step:
        """What more than half of the ranks, three at least, issued of each other kind."""
        if (kind, seq) not in self._usual:
            counts: dict[str, list[int]] = {}
            for rank in self._histories:
                for other, count in self._step(rank, kind, seq).items():
                    counts.setdefault(other, []).append(count)
            usual = {other: _most(of_other) for other, of_other in counts.items()}
            self._usual[kind, seq] = {other: most for other, most in usual.items() if most is not None}
        return self._usual[kind, seq]

    def _differed_before(self, rank: int, kind: str, seq: int, other: str) -> bool:
        """Whether it took other steps than its peers before, and nothing came of it: its part is another."""
        return any(
            (count := self._step(rank, kind, op.seq).get(other)) is not None
            and self._common(kind, op.seq).get(other, count) != count
            for op in self._histories.get(rank, {}).get(kind, ())
            if op.seq < seq
        )


def _most(counts: Sequence[int]) -> int | None:
    """What more than half of at least three say."""
    most, votes = Counter(counts).most_common(1)[0] if counts else (0, 0)
    return most if votes * 2 > len(counts) > 2 else None


def _step(history: _History, kind: str, seq: int) -> _Step:
    """Without what the dump does not keep."""
    ops = history.get(kind, ())
    here = next((op for op in ops if op.seq == seq), None)
    before = next((op for op in ops if op.seq == seq - 1), None)
    if here is None or (before is None and not _is_first(seq, ops)):
        return {}
    counts = {}
    for other, listed in history.items():
        start = _reached(listed, before.record) if before else 0
        end = _reached(listed, here.record)
        if other != kind and start is not None and end is not None:
            counts[other] = end - start
    return counts


def _is_first(seq: int, ops: Sequence[Op]) -> bool:
    return seq == 1 and bool(ops) and ops[0].seq == 1


def _reached(ops: Sequence[Op], record: int) -> int | None:
    """The highest number issued before; None where the dump may not keep it."""
    before = max((op.seq for op in ops if op.record < record), default=None)
    return 0 if before is None and (not ops or ops[0].seq == 1) else before
