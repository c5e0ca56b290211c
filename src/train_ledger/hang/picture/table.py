"""At which number of a group do the ranks part, and who did what there?

Numbers of the group downwards, around the one at which it stands; ranks that did the same at all of them
share a column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from train_ledger.hang.dumps.dump import Op
from train_ledger.hang.picture.pending import ends, member
from train_ledger.hang.reasoning.groups import GroupView, Standing
from train_ledger.hang.reasoning.roots import Root
from train_ledger.render import ranks_in_brief
from train_ledger.render.picture import Cell, Column, Mark, Step, Table

__all__ = ["Beside", "brought", "pair_table", "seq_table", "state_of"]

_BEFORE = 3
_AFTER = 3
_COLUMNS = 5
_SIZES_SHOWN = 3
_DIMS_SHOWN = 6

_Key = tuple[Hashable, ...]


def state_of(op: Op) -> str:
    """`completed` is what the recorder calls it; gloo says no more than that an operation is retired."""
    return ("completed" if op.state == "completed" else "done") if op.done else op.state


def brought(op: Op) -> str:
    """The operation with its sizes and types, as far as there is room for them."""
    sizes = " ".join(_shape(shape) for shape in op.input_sizes[:_SIZES_SHOWN])
    more = f"… {len(op.input_sizes)} tensors" if len(op.input_sizes) > _SIZES_SHOWN else ""
    dtypes = "/".join(sorted(set(op.input_dtypes)))
    parts = f"{op.parts} parts" if op.parts > 1 else ""
    return " ".join(part for part in (op.name, sizes, more, dtypes, parts) if part)


def _shape(shape: Sequence[int]) -> str:
    dims = ", ".join(map(str, shape[:_DIMS_SHOWN]))
    return f"[{dims}, …]" if len(shape) > _DIMS_SHOWN else f"[{dims}]"


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known beside the group: in what each rank is pending, by group, and whose dump is damaged."""

    elsewhere: Mapping[int, Mapping[str, str]]
    damaged: frozenset[int] = frozenset()


def seq_table(root: Root, view: GroupView, seq: int, known: Beside) -> Table:
    """The table of one group around `seq`."""
    ops = {rank: {op.seq: op for op in it.held_ops} for rank, it in view.standings.items()}
    seqs = sorted({seq, *(number for held in ops.values() for number in held)})
    place = seqs.index(seq)
    shown = seqs[max(0, place - _BEFORE) : place + 1 + _AFTER]
    pen = _Pen(root, view, seq, shown, ops, known.damaged)
    columns = _columns(pen, root)
    steps = [
        Step(str(number), tuple(pen.cell(column, number) for column in columns), here=number == seq)
        for number in shown
    ]
    others = [
        _in_common([_but(view.label, known.elsewhere.get(rank, {})) for rank in column.ranks])
        for column in columns
    ]
    if any(others):
        steps.append(Step("elsewhere", tuple(Cell(text or "nothing pending") for text in others)))
    behind = len(seqs) - place - 1 - _AFTER
    notes = [f"and {behind} more behind it, up to number {seqs[-1]}"] if behind > 0 else []
    members = ranks_in_brief(view.group.ranks) + (" (inferred)" if view.group.inferred else "")
    return Table(f"{view.label}, {members}", tuple(columns), tuple(steps), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Pen:
    root: Root
    view: GroupView
    seq: int
    shown: Sequence[int]
    ops: Mapping[int, Mapping[int, Op]]
    damaged: frozenset[int]

    def key(self, rank: int, *, coarse: bool) -> _Key:
        """What must be equal of ranks that share a column."""
        standing = self.view.standings.get(rank)
        if standing is None:
            return None, rank in self.damaged
        told = self.shown if not coarse else [self.seq]
        return tuple(self._did(rank, standing, number, coarse) for number in told)

    def _did(self, rank: int, standing: Standing, number: int, coarse: bool) -> Hashable:
        op = self.ops[rank].get(number)
        if op is None:
            return standing.reached(number), _has_finished(standing, number)
        if coarse:
            return op.name, op.done
        compares_sizes = number == self.seq and self.root.kind == "size_or_syntax_mismatch"
        return op.name, op.input_dtypes, op.done, op.input_sizes if compares_sizes else ()

    def cell(self, column: Column, number: int) -> Cell:
        first = next((self.ops[rank].get(number) for rank in column.ranks if rank in self.ops), None)
        if first is None:
            return self._without(column.ranks[0], number)
        all_ops = [op for rank in column.ranks if (op := self.ops.get(rank, {}).get(number))]
        if len({op.name for op in all_ops}) > 1:
            names = Counter(op.name for op in all_ops)
            return Cell(", ".join(f"{count}× {name}" for name, count in names.most_common(3)), "odd")
        states = "/".join(sorted({state_of(op) for op in all_ops}))
        sizes = {op.input_sizes for op in all_ops}
        told = brought(first) if len(sizes) == 1 else f"{first.name}, {len(sizes)} different sizes"
        return Cell(f"{told}, {states}", self._mark(column, first, number))

    def _mark(self, column: Column, op: Op, number: int) -> Mark:
        odd = self._odd_sides()
        if number == self.seq and not odd.isdisjoint(column.ranks):
            return "odd"
        return "done" if op.done else "pending"

    def _odd_sides(self) -> frozenset[int]:
        """Who stands out by what it brought: the culprits, or where nobody has the majority, everybody."""
        root = self.root
        if root.view is not self.view or root.kind in ("missing_ranks", "no_mismatch", "cycle"):
            return frozenset()
        return frozenset(root.culprits or (root.mismatch.ops if root.mismatch else ()))

    def _without(self, rank: int, number: int) -> Cell:
        standing = self.view.standings.get(rank)
        if standing is None:
            damaged = "its dump could not be read" if rank in self.damaged else "no dump"
            return Cell(f"not known: {damaged}", "unknown")
        reached = standing.reached(number)
        if reached and _has_finished(standing, number):
            return Cell("finished; its entry is not kept", "done")
        if reached:
            return Cell("issued; its entry is not kept", "unknown")
        if reached is None:
            return Cell("not known: its dump does not reach that far", "unknown")
        if number > self.seq:
            return Cell("not issued")
        return Cell("has not come", "absent" if number == self.seq else "")


def _has_finished(standing: Standing, number: int) -> bool:
    held = standing.held
    return held is not None and held.exact and (held.lowest_pending is None or number < held.lowest_pending)


def _columns(pen: _Pen, root: Root) -> list[Column]:
    """The largest first, then culprits, then the others; past `_COLUMNS` the rest is one."""
    accused = frozenset(root.culprits)
    found = _merged(pen, accused, coarse=False)
    if len(found) > _COLUMNS:
        found = _merged(pen, accused, coarse=True)
    found.sort(key=lambda ranks: (-len(ranks), ranks))
    usual, *others = found
    others.sort(key=lambda ranks: (accused.isdisjoint(ranks), -len(ranks), ranks))
    kept, rest = [usual, *others][:_COLUMNS], [usual, *others][_COLUMNS:]
    if rest:
        kept[-1:] = [tuple(sorted(rank for ranks in (kept[-1], *rest) for rank in ranks))]
    return [Column(ranks, _note(ranks, accused, merged=bool(rest) and ranks is kept[-1])) for ranks in kept]


def _merged(pen: _Pen, accused: Collection[int], *, coarse: bool) -> list[tuple[int, ...]]:
    by_key: dict[_Key, list[int]] = {}
    for rank in dict.fromkeys(pen.view.group.ranks):
        by_key.setdefault((rank in accused, *pen.key(rank, coarse=coarse)), []).append(rank)
    return [tuple(sorted(ranks)) for ranks in by_key.values()]


def _note(ranks: Sequence[int], accused: Collection[int], *, merged: bool) -> str:
    if merged:
        return "several, drawn together"
    if ranks[0] in accused:
        return "culprit" if len(ranks) == 1 else "culprits"
    return ""


def _but(label: str, pending: Mapping[str, str]) -> list[str]:
    return [text for group, text in pending.items() if group != label]


def _in_common(pending: Sequence[Sequence[str]]) -> str:
    """What ranks are pending in, in few words, where it is more or less the same."""
    counts = Counter(text for texts in pending for text in texts)
    if not counts:
        return ""
    text, ranks = counts.most_common(1)[0]
    rest = len(counts) - 1
    some = "" if ranks == len(pending) else f" ({ranks} of {len(pending)} ranks)"
    return f"{text}{some}" + (f", and {rest} more" if rest else "")


def pair_table(root: Root) -> Table:
    """A send or receive that is pending beside the partner that has not posted its side."""
    op, view = root.op, root.view
    source, target = member(view, op.source), member(view, op.target)
    near, far = (source, target) if op.sends else (target, source)
    other = "recv" if op.sends else "send"
    if far in view.standings:
        missing = Cell(f"no {other} posted", "absent")
    else:
        missing = Cell(f"not known whether its {other} is posted", "unknown")
    columns = tuple(
        Column(() if rank is None else (rank,), "culprit" if rank in root.culprits else "")
        for rank in (near, far)
    )
    came = Cell(
        f"{op.name} {ends(view, op)} {brought(op).removeprefix(op.name).strip()}, {state_of(op)}", "pending"
    )
    notes = () if far is None or far not in view.standings else tuple(_posted(view, far))
    return Table(
        f"{op.name} in {view.label}", columns, (Step(str(root.seq), (came, missing), here=True),), notes
    )


def _posted(view: GroupView, rank: int) -> Iterator[str]:
    held = view.standings[rank].held
    if held and held.p2p:
        listed = [f"{op.name} {ends(view, op)}, number {op.seq}" for op in held.p2p[:3]]
        yield f"rank {rank} has pending: {'; '.join(listed)}"
