"""What is the answer where only logs speak?

Where no dump says who waits for whom, the ranks' own logs may: the check of TORCH_DISTRIBUTED_DEBUG=DETAIL
says what each came with, a monitored barrier who did not come, and a watchdog that its rank did. That a log
is silent is weak evidence; it names somebody only where nearly all others have spoken.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from train_ledger.answer import Confidence, Finding, Group
from train_ledger.hang.knowledge import OTHER_GROUP, Brought, RankKnowledge, TimedOut, in_words
from train_ledger.hang.verdict.causes import Signs, suspect
from train_ledger.hang.verdict.rank_lines import brought_in_words, of_rank, timeouts_line
from train_ledger.render import harmless, ranks_in_brief

__all__ = ["Told", "raised", "told", "undecided"]

_DEFAULT = "0"
_SHOWN = 4
_SOURCE = re.compile(r"\[/[^\[\]]{1,200}:\d{1,6}\] ")
"""Where in gloo's own source: it parts messages that are one."""


@dataclass(frozen=True, slots=True)
class Told:
    """A finding from logs alone, and how sure it is."""

    finding: Finding
    confidence: Confidence


def told(known: Mapping[int, RankKnowledge], world: Sequence[int]) -> Told | None:
    """The strongest thing that the logs say of a hang; None where they say nothing that decides."""
    return _mismatch(known, world) or _barrier(known, world) or _silent(known, world)


def undecided(known: Mapping[int, RankKnowledge]) -> Iterator[str]:
    """What watchdogs reported that names nobody, for the list of what was not seen."""
    by: dict[tuple[str | None, int | None, str | None], list[int]] = {}
    for rank, it in sorted(known.items()):
        for report in it.timed_out:
            by.setdefault((report.group, report.seq, report.op), []).append(rank)
    for (group, seq, op), ranks in sorted(by.items(), key=lambda it: (-len(it[1]), str(it[0])))[:_SHOWN]:
        what = f"number {seq}" + (f" ({harmless(op, longest=40)})" if op else "")
        of = f" of group {harmless(group, longest=80)}" if group not in (None, OTHER_GROUP) else ""
        yield f"logs: {ranks_in_brief(ranks)} timed out at {what}{of}; who did not come there is not said"


def raised(known: Mapping[int, RankKnowledge]) -> Iterator[str]:
    """What ranks raised and who raised nothing, for the list of what was not seen: it names nobody."""
    by: dict[str, list[int]] = {}
    for rank, it in sorted(known.items()):
        if it.exception:
            by.setdefault(harmless(_SOURCE.sub("", it.exception), longest=160), []).append(rank)
    for said, ranks in sorted(by.items(), key=lambda it: -len(it[1]))[:_SHOWN]:
        yield f"logs: {ranks_in_brief(ranks)} raised {said}"
    silent = [rank for rank, it in known.items() if not it.exception]
    if by and silent:
        yield f"logs: {ranks_in_brief(silent)} raised nothing: late, or ended before"


def _mismatch(known: Mapping[int, RankKnowledge], world: Sequence[int]) -> Told | None:
    brought = {rank: it.brought for rank, it in known.items() if it.brought}
    if len(brought) < 2:
        return None
    sides = Counter((it.op, it.shape, it.dtypes) for it in brought.values())
    (usual, count), *others = sides.most_common()
    if not others:
        return None
    odd = tuple(sorted(r for r, it in brought.items() if (it.op, it.shape, it.dtypes) != usual))
    culprits = odd if 2 * count > len(brought) else ()
    example = brought[odd[0]]
    kind = _kind_of(example, usual)
    lines = [
        f"DETAIL, number {example.seq}: {ranks_in_brief(_of_side(brought, side))} brought "
        + brought_in_words(Brought(side[0], None, side[1], side[2]))
        for side, _ in sides.most_common(_SHOWN)
    ]
    if not culprits:
        lines.append("nobody is accused: no side has the majority")
    elif len(brought) < len(world):
        lines.append(f"{len(brought)} of {len(world)} ranks said what they brought")
    finding = _finding(
        kind, culprits, known, world, lines, seq=example.seq, op=example.op, others_op=usual[0]
    )
    return Told(finding, "medium" if culprits else "low")


def _of_side(brought: Mapping[int, Brought], side: tuple[str | None, ...]) -> list[int]:
    return sorted(rank for rank, it in brought.items() if (it.op, it.shape, it.dtypes) == side)


def _kind_of(odd: Brought, usual: tuple[str | None, ...]) -> str:
    if odd.op != usual[0]:
        return "collective_type_mismatch"
    return "size_or_syntax_mismatch" if odd.shape != usual[1] else "collective_dtype_mismatch"


def _barrier(known: Mapping[int, RankKnowledge], world: Sequence[int]) -> Told | None:
    missed = tuple(sorted(rank for rank, it in known.items() if it.missed_barrier))
    if not missed or 2 * len(missed) >= len(world):
        return None
    lines = [f"log of rank 0: a monitored barrier waited for {ranks_in_brief(missed)} in vain"]
    return Told(_finding("missing_ranks", missed, known, world, lines, op="barrier"), "medium")


def _silent(known: Mapping[int, RankKnowledge], world: Sequence[int]) -> Told | None:
    """Of the whole world's group: who came to the earliest number that timed out, and who did not."""
    reports = {rank: it.timed_out for rank, it in known.items() if it.timed_out}
    of_world = {rank: found for rank, its in reports.items() if (found := _of_world(its))}
    seqs = [it.seq for it in of_world.values() if it.seq is not None]
    if not seqs or 2 * len(of_world) <= len(world):
        return None
    if any(it.group is None for it in of_world.values()) and len(set(seqs)) > 1:
        return None  # of different groups, which the log does not tell apart
    seq = min(seqs)
    first = next(it for it in of_world.values() if it.seq == seq)
    came = {rank for rank in world if rank in of_world or _enqueued(known.get(rank), seq, first.group)}
    silent = tuple(rank for rank in world if rank not in came)
    lines = [line for line in (timeouts_line(known, seq, first.group),) if line]
    if not silent:
        return _all_came(known, world, of_world, seq)
    behind = [rank for rank in silent if _behind(known.get(rank), seq)]
    for rank in behind[:_SHOWN]:
        lines.append(f"log of rank {rank}: it had issued number {known[rank].enqueued} last, {seq} not yet")
    if 2 * len(silent) >= len(world):
        return None
    finding = _finding("missing_ranks", silent, known, world, lines, seq=seq, op=first.op)
    return Told(finding, "medium" if len(behind) == len(silent) else "low")


def _all_came(
    known: Mapping[int, RankKnowledge], world: Sequence[int], of_world: Mapping[int, TimedOut], seq: int
) -> Told:
    """All ranks tell of it or of a later one: some came with something else, or few did not finish it."""
    at = {rank: it.op for rank, it in of_world.items() if it.seq == seq}
    (usual, count), *others = Counter(at.values()).most_common()
    lines = [line for line in (timeouts_line(known, seq, of_world[min(at)].group),) if line]
    if others and None not in at.values():
        odd = tuple(sorted(rank for rank, op in at.items() if op != usual))
        named = odd if 2 * count > len(world) else ()
        lines.append(f"{ranks_in_brief(odd)} timed out in {harmless(str(at[odd[0]]), longest=40)} there")
        kind = "collective_type_mismatch"
        finding = _finding(kind, named, known, world, lines, seq=seq, op=at[odd[0]], others_op=usual)
        return Told(finding, "medium")
    past = sorted(rank for rank, it in of_world.items() if it.seq is not None and it.seq > seq)
    if not past:
        lines.append("every rank came to it by its own log, and none finished")
        return Told(_finding("no_mismatch", (), known, world, lines, seq=seq, op=usual), "low")
    lines.append(f"{ranks_in_brief(past)} timed out at a later number, and had finished this one")
    named = tuple(sorted(at)) if 2 * len(at) < len(world) else ()
    return Told(_finding("completion_laggard", named, known, world, lines, seq=seq, op=usual), "low")


def _of_world(reports: Sequence[TimedOut]) -> TimedOut | None:
    """The report on the group of all ranks; one whose group is not named may be of it."""
    named = [it for it in reports if it.group == _DEFAULT]
    return next(iter(named or [it for it in reports if it.group is None]), None)


def _enqueued(rank: RankKnowledge | None, seq: int, group: str | None) -> bool:
    return rank is not None and group == _DEFAULT and rank.enqueued is not None and rank.enqueued >= seq


def _behind(rank: RankKnowledge | None, seq: int) -> bool:
    return rank is not None and rank.enqueued is not None and rank.enqueued < seq


def _finding(
    kind: str,
    culprits: tuple[int, ...],
    known: Mapping[int, RankKnowledge],
    world: Sequence[int],
    lines: Sequence[str],
    *,
    seq: int | None = None,
    op: str | None = None,
    others_op: str | None = None,
) -> Finding:
    suspicion = suspect(Signs(kind, op or "", others_op, rank=known.get(culprits[0]) if culprits else None))
    of_culprits = [
        line
        for rank in culprits[:_SHOWN]
        if (it := known.get(rank))
        for line in (*of_rank(it), in_words(it))
        if line and not (it.missed_barrier and "barrier" in line)
    ]
    return Finding(
        kind=kind,
        culprits=culprits,
        group=Group("0", "default_pg", tuple(world), inferred=True),
        seq=seq,
        op=op,
        others_op=others_op,
        waiting=tuple(sorted({*world}.difference(culprits))),
        cause_suspected=suspicion.cause,
        fix=suspicion.fix,
        evidence=(*lines, *of_culprits, "from logs alone: no dump says so"),
    )
