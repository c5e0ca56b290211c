"""How does a cause read to a person, and on what evidence does it rest?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from train_ledger.answer import Confidence, Finding
from train_ledger.hang.dumps.dump import Op
from train_ledger.hang.fall import sure_of_fall
from train_ledger.hang.reasoning.roots import Root
from train_ledger.hang.stacks import stand_of
from train_ledger.hang.verdict.accused import accused_frame, accused_lines
from train_ledger.hang.verdict.evidence import Evidence, suspicion_of, with_failed_gpu
from train_ledger.hang.verdict.rank_lines import of_rank, timeouts_line
from train_ledger.render import ranks_in_brief

__all__ = ["LEVELS", "confidence_of", "finding_of"]

LEVELS: tuple[Confidence, ...] = ("low", "medium", "high")
"""Each is surer than the one before."""

_SHOWN = 3
_MOST_LINES = 9
_YOUNG_S = 5.0
"""Ranks of a job that runs are apart as long as this, too, and a large dump takes seconds to be written."""
_LONGEST_HANG_S = 24 * 3600
"""Beyond, the file was copied or unpacked, and its time says nothing."""


def finding_of(root: Root, evidence: Evidence) -> Finding:
    """The cause as it is shown, with the rank's place in its code and what to do about it."""
    usual = root.mismatch.usual if root.mismatch else None
    suspicion = suspicion_of(root, evidence)
    return Finding(
        kind=root.kind,
        culprits=root.culprits,
        group=root.view.group,
        seq=root.seq,
        op=root.op.name,
        others_op=usual.name if usual else None,
        state=root.op.state,
        waiting=root.waiting,
        frame=accused_frame(root, evidence),
        cause_suspected=suspicion.cause,
        fix=suspicion.fix,
        evidence=tuple(_shortened([*dict.fromkeys(_lines(root, evidence))])),
    )


def _shortened(lines: Sequence[str]) -> Sequence[str]:
    """What can be read at three in the morning: the most telling lines, and how many more there are."""
    if len(lines) <= _MOST_LINES:
        return lines
    return [
        *lines[: _MOST_LINES - 1],
        f"and {len(lines) - _MOST_LINES + 1} more lines of evidence like these",
    ]


def confidence_of(root: Root, evidence: Evidence) -> Confidence:
    """High: dumps of all members and a clear majority, or the stack agrees. Low: a dump is missing.

    Low, too, where the wait had only begun when the dumps were written: it may have ended since. Who raised
    does not come any more: that counts beside the dumps.
    """
    by_dumps = _by_dumps(root, evidence)
    if not _fell(root, evidence):
        return by_dumps
    by_its_word = sure_of_fall(evidence.known, root.culprits, {*root.view.group.ranks, *evidence.dumps})
    return max(by_dumps, by_its_word, key=LEVELS.index)


def _most_are_late(root: Root) -> bool:
    """Whether more than half of the group did not come, be they accused or victims of others who did not."""
    late = sum(it.reached(root.seq) is False for it in root.view.standings.values())
    return root.kind == "missing_ranks" and bool(root.culprits) and late * 2 > len(root.view.group.ranks)


def _fell(root: Root, evidence: Evidence) -> bool:
    """Whether it is about ranks that are known to have fallen by themselves."""
    return bool(root.culprits) and {*root.culprits} <= {*evidence.fallen}


def _by_dumps(root: Root, evidence: Evidence) -> Confidence:
    if _is_young(root, evidence):
        return "low"
    stands = {stand_of(evidence.stacks[rank]).where for rank in root.culprits if rank in evidence.stacks}
    if not root.seen:
        return "medium" if stands == {"host"} else "low"
    if root.mismatch and not root.culprits:
        return "low"
    if root.kind == "missing_ranks" and not root.culprits:
        return "low"
    if root.kind == "no_mismatch" and root.view.group.inferred:
        return "low"
    if (root.mismatch and root.mismatch.why) or (root.kind == "cycle" and not root.why):
        return "medium"
    is_whole = not root.view.without_dump and not any(it.cut for it in root.view.standings.values())
    most_accused = len(root.culprits) * 2 > len(root.view.group.ranks)
    if root.kind == "missing_ranks" and stands == {"host"} and not most_accused:
        return "high"
    if _most_are_late(root) and stands != {"host"}:
        return "low"
    return "high" if is_whole and root.culprits and not most_accused else "medium"


def _lines(root: Root, evidence: Evidence) -> Iterator[str]:
    if root.mismatch:
        yield from _sides(root)
    else:
        yield _who_waits(root) + _since(root, evidence)
    if _most_are_late(root):
        yield "most of the group did not come: the few that did may have issued one operation too many"
    yield from root.why
    if told := timeouts_line(evidence.known, root.seq, root.view.group.name):
        yield told
    if not root.culprits:
        for rank in with_failed_gpu(root, evidence)[:_SHOWN]:
            yield from of_rank(evidence.known[rank])
    for rank in root.culprits[:_SHOWN]:
        yield from accused_lines(rank, root, evidence)
    if len(root.culprits) > _SHOWN:
        yield f"and {len(root.culprits) - _SHOWN} more like these"
    if root.kind == "completion_laggard":
        yield from _finished_by(root)


def _who_waits(root: Root) -> str:
    where = f"{root.op.name}, number {root.seq} of {root.view.label}, state {root.op.state}"
    if root.kind == "no_mismatch":
        return f"all of {ranks_in_brief(root.view.group.ranks)} issued {where}; none finishes"
    if root.kind == "cycle":
        circle = ranks_in_brief((*root.waiting, *root.culprits))
        return f"{circle} wait for each other; one of the operations is {where}"
    if root.kind == "completion_laggard":
        how = "has not begun there" if root.why else "does not finish there, as it has elsewhere"
        return f"{ranks_in_brief(root.culprits)} issued {where}; it {how}"
    if root.p2p:
        if len(root.waiting) > 1:
            who = f"{ranks_in_brief(root.waiting)} wait each in a send or receive of {root.view.label}"
            return f"{who}, one in {_pair(root)}; their other sides are not posted"
        return f"{ranks_in_brief(root.waiting)} waits in {_pair(root)}; the other side is not posted"
    return f"{ranks_in_brief(root.waiting)} {'waits' if len(root.waiting) == 1 else 'wait'} in {where}"


def _since(root: Root, evidence: Evidence) -> str:
    """How long it had been pending when the dump was written; silent where the file's time cannot be that."""
    if _is_young(root, evidence):
        return f", pending for less than {_YOUNG_S:.0f} s when it was dumped: it may be a job that runs"
    age_s = _pending_s(root, evidence)
    return f", pending for {age_s:.0f} s when it was dumped" if _YOUNG_S <= age_s < _LONGEST_HANG_S else ""


def _is_young(root: Root, evidence: Evidence) -> bool:
    """Whether it is a wait, not a difference, and had begun right before the dump was written.

    A wait for who has fallen is none of a job that runs, however young it was.
    """
    if _fell(root, evidence):
        return False
    return root.mismatch is None and -_YOUNG_S < _pending_s(root, evidence) < _YOUNG_S


def _pending_s(root: Root, evidence: Evidence) -> float:
    """By the time of the file; without end where there is none."""
    dump = evidence.dumps.get(root.waiting[0]) if root.waiting else None
    return dump.mtime - root.op.created_ns / 1e9 if dump and dump.mtime and root.op.created_ns else inf


def _pair(root: Root) -> str:
    ranks = root.view.group.ranks
    if root.op.source is None or root.op.target is None:
        return root.op.name
    source, target = (_end(it, ranks) for it in (root.op.source, root.op.target))
    return f"{root.op.name} from {source} to {target} in {root.view.label}"


def _end(rank_in_group: int, ranks: Sequence[int]) -> str:
    if rank_in_group < 0:
        return "any rank"
    is_listed = rank_in_group < len(ranks)
    return f"rank {ranks[rank_in_group]}" if is_listed else f"rank {rank_in_group} of the group"


def _sides(root: Root) -> Iterator[str]:
    """What was brought to the same number, the usual side first."""
    assert root.mismatch is not None  # noqa: S101 – only called for mismatches
    sides: dict[str, list[int]] = {}
    for rank, op in root.mismatch.ops.items():
        sides.setdefault(_brought(op), []).append(rank)
    for brought, ranks in sorted(sides.items(), key=lambda side: (-len(side[1]), side[1])):
        yield f"number {root.seq} of {root.view.label}: {ranks_in_brief(ranks)} brought {brought}"
    if root.mismatch.why:
        yield root.mismatch.why if root.culprits else f"nobody is accused: {root.mismatch.why}"


def _brought(op: Op) -> str:
    shapes = [list(shape) for shape in op.input_sizes]
    sizes = f" {shapes[0] if len(shapes) == 1 else shapes}" if shapes else ""  # as the table has them
    dtypes = f" {'/'.join(sorted(set(op.input_dtypes)))}" if op.input_dtypes else ""
    return f"{op.name}{sizes}{dtypes}, {'done' if op.done else op.state}"


def _finished_by(root: Root) -> Iterator[str]:
    done = [
        rank
        for rank, standing in root.view.standings.items()
        if standing.held and (standing.lowest_pending is None or standing.lowest_pending > root.seq)
    ]
    if done:
        yield f"{ranks_in_brief(done)} finished number {root.seq} of {root.view.label}"
