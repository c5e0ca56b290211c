"""What is the verdict, how sure is it, and what was not seen on the way?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from train_ledger.answer import Confidence, Finding, HangAnswer
from train_ledger.hang.dumps.dump_files import Dumps
from train_ledger.hang.dumps.held import KEPT_P2P
from train_ledger.hang.fall import is_over, sure_of_fall
from train_ledger.hang.knowledge import in_words
from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.laggards import Wait
from train_ledger.hang.reasoning.roots import Roots
from train_ledger.hang.stacks import frame_of
from train_ledger.hang.verdict.causes import Signs, suspect
from train_ledger.hang.verdict.evidence import Evidence
from train_ledger.hang.verdict.findings import LEVELS, confidence_of, finding_of
from train_ledger.hang.verdict.next_commands import next_commands
from train_ledger.hang.verdict.rank_lines import of_rank
from train_ledger.hang.verdict.ruled_out import ruled_out
from train_ledger.hang.verdict.told import raised, told, undecided
from train_ledger.render import ranks_in_brief

__all__ = ["conclude"]


def conclude(
    found: Roots,
    read: Dumps,
    views: Sequence[GroupView],
    evidence: Evidence,
    world: Sequence[int],
    beyond_bounds: Sequence[str] = (),
) -> HangAnswer:
    """The answer, from the causes that were found and all that was read on the way.

    `beyond_bounds` says in words what was too large to be reasoned over.
    """
    findings = tuple(finding_of(root, evidence) for root in found.roots)
    seen = {*evidence.dumps, *read.damaged}
    missing = tuple(rank for rank in world if rank not in seen)
    gaps = [*_gaps(missing, read, evidence), *beyond_bounds]
    by_logs = None
    if not findings and evidence.fallen:
        findings = (_of_the_fallen(evidence, world),)
    elif not findings and (gaps or found.undecided):
        by_logs = told(evidence.known, world)
        findings = (by_logs.finding,) if by_logs else ()
    first = findings[0] if findings else None
    verdict = _verdict(findings, found, evidence, gaps, bool(views))
    return HangAnswer(
        verdict=verdict,
        culprits=tuple(sorted({rank for finding in findings for rank in finding.culprits})),
        confidence=by_logs.confidence if by_logs else _confidence(found, findings, evidence, world, verdict),
        kind=first.kind if first else None,
        seq=first.seq if first else None,
        op=first.op if first else None,
        group=first.group if first else None,
        findings=findings,
        victims_of=found.victims_of or {rank: f.waiting for f in findings for rank in f.culprits},
        unreadable=read.unreadable,
        missing_dumps=missing,
        stale=read.stale,
        ruled_out=tuple(ruled_out(findings, found, views, evidence, gaps)),
        not_observed=tuple(_not_observed(found, views, evidence, gaps, by_logs or bool(findings))),
        next=tuple(next_commands(findings, evidence, [*read.stale, *(it.file for it in read.unreadable)])),
    )


def _verdict(
    findings: Sequence[Finding], found: Roots, evidence: Evidence, gaps: Sequence[str], is_pending: bool
) -> Literal["hang", "no_hang", "cannot_tell"]:
    if findings:
        return "hang"
    told = any(dump.entries or dump.enqueued for dump in evidence.dumps.values())
    if gaps or found.undecided or is_pending or not told:
        return "cannot_tell"
    return "no_hang"


def _confidence(
    found: Roots, findings: Sequence[Finding], evidence: Evidence, world: Sequence[int], verdict: str
) -> Confidence:
    """That of the weakest accusation: one wrong name spoils the answer."""
    accusing = [root for root in found.roots if root.culprits] or list(found.roots)
    if accusing:
        return min((confidence_of(root, evidence) for root in accusing), key=LEVELS.index)
    if findings:
        return sure_of_fall(evidence.known, evidence.fallen, world)
    return "low" if verdict == "cannot_tell" else "medium"


def _of_the_fallen(evidence: Evidence, world: Sequence[int]) -> Finding:
    """Nothing is pending in the dumps, but a rank is known to have died or raised by itself."""
    culprits = tuple(sorted(evidence.fallen))
    suspicion = suspect(Signs("missing_ranks", rank=evidence.known[culprits[0]], fell=True))
    stack = evidence.stacks.get(culprits[0])
    return Finding(
        kind="missing_ranks",
        culprits=culprits,
        group=None,
        seq=None,
        op=None,
        waiting=tuple(_left_waiting(world, evidence)),
        frame=frame_of(stack) if stack else None,
        cause_suspected=suspicion.cause,
        fix=suspicion.fix,
        evidence=(
            *(line for rank in culprits for line in of_rank(evidence.known[rank])),
            *(said for rank in culprits if (said := in_words(evidence.known[rank]))),
            *(["no operation is pending in the dumps that were read"] if evidence.dumps else []),
            *undecided(evidence.known),
        ),
    )


def _left_waiting(world: Sequence[int], evidence: Evidence) -> Iterator[int]:
    """Who fell with others, or was ended, waits for nobody any more."""
    for rank in sorted({*world}.difference(evidence.fallen)):
        known = evidence.known.get(rank)
        if known is None or not is_over(known):
            yield rank


def _gaps(missing: Sequence[int], read: Dumps, evidence: Evidence) -> Iterator[str]:
    if not read.dumps:
        yield "no dump could be read"
    if none := sorted({*missing}.difference(read.set_aside)):
        yield f"{_dumps_of(none)}: none was found, so whether {_joined(none)} is not known"
    if old := sorted({*missing}.intersection(read.set_aside)):
        yield f"{_dumps_of(old)}: of another time, and set aside, so whether {_joined(old)} is not known"
    yield from _reasons(missing, evidence)
    if read.damaged:
        yield f"{_dumps_of(read.damaged)}: there, but not readable"
    if cut := [dump.rank for dump in read.dumps if dump.cut]:
        yield f"{_dumps_of(cut)}: read in part, so what does not show there may yet have been"


def _reasons(missing: Sequence[int], evidence: Evidence) -> Iterator[str]:
    """Why there is no dump, where a log says so; ranks of one reason in one line."""
    by_reason: dict[str, list[int]] = {}
    for rank in missing:
        if (known := evidence.known.get(rank)) and known.no_dump:
            by_reason.setdefault(known.no_dump, []).append(rank)
    for reason, ranks in sorted(by_reason.items(), key=lambda it: -len(it[1])):
        yield f"{_dumps_of(ranks)}: {reason}"


def _dumps_of(ranks: Sequence[int]) -> str:
    return f"{'dump' if len(ranks) == 1 else 'dumps'} of {ranks_in_brief(ranks)}"


def _joined(ranks: Sequence[int]) -> str:
    return "it joined" if len(ranks) == 1 else "they joined"


def _not_observed(
    found: Roots,
    views: Sequence[GroupView],
    evidence: Evidence,
    gaps: Sequence[str],
    is_answered: object,
) -> Iterator[str]:
    dumps = evidence.dumps.values()
    yield from gaps
    if not is_answered:
        yield from undecided(evidence.known)
        yield from raised(evidence.known)
    if dumps and not any(dump.has_frames for dump in dumps):
        yield "frames: the dumps hold none"
    if any(held.backend == "gloo" for dump in dumps for held in dump.groups):
        yield "sends and receives: gloo does not record them"
    if full := [dump.rank for dump in dumps if any(len(it.p2p) >= KEPT_P2P for it in dump.groups)]:
        yield f"sends and receives of {ranks_in_brief(full)}: those after {KEPT_P2P} pending ones of a group"
    if any(view.group.inferred for view in views):
        yield "group members: the dumps list none, they are inferred from who recorded in the group"
    if any(dump.wrapped for dump in dumps):
        yield "older operations: they fell off the ring of the recorder"
    if not evidence.stacks:
        yield "stacks: none were handed in"
    yield from (_undecided(wait) for wait in found.undecided)
    if not any(it.gpu_faults for it in evidence.known.values()):
        yield "hardware: dumps say nothing of GPUs, links and hosts"


def _undecided(wait: Wait) -> str:
    at = f"{wait.op.name}, number {wait.seq} of {wait.view.label}"
    if wait.unknown:
        return f"{at}: whether {ranks_in_brief(wait.unknown)} joined cannot be seen"
    return f"{at}: {ranks_in_brief(wait.waiters)} alone recorded in it, its other members are not listed"
