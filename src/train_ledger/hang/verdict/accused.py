"""Where does an accused rank stand, and what do its dump, its stack and its logs say of it?"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.hang.dumps.dump import Dump, Op
from train_ledger.hang.knowledge import in_words
from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.roots import Root
from train_ledger.hang.stacks import frame_of, stand_of
from train_ledger.hang.stacks.frames import parse_frame, user_frame
from train_ledger.hang.verdict.evidence import Evidence
from train_ledger.hang.verdict.rank_lines import of_rank

__all__ = ["accused_frame", "accused_lines"]


def accused_frame(root: Root, evidence: Evidence) -> str | None:
    """Where the first culprit stands: by its stack, else by what its dump recorded last."""
    if not root.culprits:
        return None
    rank = root.culprits[0]
    if rank in evidence.stacks:
        return frame_of(evidence.stacks[rank])
    standing = root.view.standings.get(rank)
    own = standing.op(root.seq) if standing and root.kind != "missing_ranks" else None
    dump = evidence.dumps.get(rank)
    return _frame_of_op(own) or (_frame_of_op(dump.last) if dump else None)


def accused_lines(rank: int, root: Root, evidence: Evidence) -> Iterator[str]:
    """All lines of evidence about one culprit, those of its logs and its GPU first."""
    known = evidence.known.get(rank)
    if known is not None:
        yield from of_rank(known)
    dump = evidence.dumps.get(rank)
    if dump is None:
        yield f"{_why_without_dump(rank, evidence)}: whether it joined is not known"
    else:
        if not root.mismatch and not root.p2p and root.kind != "completion_laggard":
            yield _last_in_group(rank, root.view)
        yield from _age(rank, dump, evidence)
    if rank in evidence.stacks:
        stand = stand_of(evidence.stacks[rank])
        yield f"stack of rank {rank}: {stand.what}" + (f", at {stand.frame}" if stand.frame else "")
    elif dump and root.kind == "missing_ranks" and (frame := _frame_of_op(dump.last)):
        yield f"rank {rank} issued its last operation at {frame}; where it stands now, only its stack says"
    if known is not None and (said := in_words(known)):
        yield said


def _frame_of_op(op: Op | None) -> str | None:
    if op is None or not op.frames:
        return None
    frames = [parse_frame(text) for text in op.frames]
    return str(user_frame(frames) or frames[0])


def _why_without_dump(rank: int, evidence: Evidence) -> str:
    if rank in evidence.damaged:
        return f"the dump of rank {rank} could not be read"
    if rank in evidence.set_aside:
        return f"the dump of rank {rank} is of another time than those of the others, and set aside"
    return f"rank {rank} left no dump"


def _last_in_group(rank: int, view: GroupView) -> str:
    held = view.standings[rank].held if rank in view.standings else None
    if held is None or held.highest is None:
        return f"rank {rank} holds nothing of {view.label} in its dump: it has nothing pending there"
    op = view.standings[rank].op(held.highest)
    how = f": {op.name}, {'done' if op.done else op.state}" if op else ""
    return f"rank {rank} last issued number {held.highest} there{how}"


def _age(rank: int, dump: Dump, evidence: Evidence) -> Iterator[str]:
    behind_s = (evidence.newest_ns - dump.newest_ns) / 1e9
    if dump.newest_ns and behind_s >= 1:
        yield f"the newest operation of rank {rank} is {behind_s:.0f} s older than the newest of all ranks"
