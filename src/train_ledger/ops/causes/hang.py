"""A run hangs: which rank is the cause, and of what kind is it?

Joins the answer of the dumps and stacks with what the state knows of each rank. The first cause is wanted,
not the loudest: a rank that raised because its peer's connection closed, or that the launcher ended, is a
victim.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from train_ledger.answer import Confidence, Diagnosis, Finding, HangAnswer, RuledOut
from train_ledger.hang import contradicts, in_words, sure_of_fall
from train_ledger.hang.knowledge import is_consequence
from train_ledger.ledger import RunState
from train_ledger.ops.evidence import HangEvidence
from train_ledger.ops.evidence.acquittal import MISMATCHES, accuses_the_ended, acquitted
from train_ledger.ops.evidence.deaths import deaths_of
from train_ledger.ops.evidence.outside import ended_from_outside, ends_in_words
from train_ledger.ops.words import step_clock
from train_ledger.render import ranks_in_brief

__all__ = ["of_hang", "without_contradictions"]

_LEVELS: tuple[Confidence, ...] = ("low", "medium", "high")
_COMMUNICATING = ("forward", "backward", "optimizer")
_ALONE = ("data", "compile", "checkpoint_save", "checkpoint_load", "evaluation")


def of_hang(state: RunState, evidence: HangEvidence, looked_at: Collection[int]) -> Diagnosis:
    """The cause of a hang, from a folded state and what the dumps and stacks say.

    `looked_at` are the ranks whose processes somebody looked at, so that none dead means something.
    """
    deaths = deaths_of(state, looked_at)
    by_whom: tuple[str, ...] = ()
    answer = evidence.answer
    if accuses_the_ended(state, answer, evidence.fallen):
        answer = acquitted(answer, state)
        by_whom = () if evidence.fallen else (ends_in_words(state),)
        cause, ranks = ("hang.rank_died", evidence.fallen) if evidence.fallen else ("unknown", ())
    else:
        cause, ranks = _cause(state, evidence)
    confidence = _confidence(answer, evidence, cause, ranks)
    if cause == "hang.rank_died":
        by_its_word = sure_of_fall(evidence.known, ranks, state.ranks)
        confidence = max(confidence, by_its_word, key=_LEVELS.index)
    return Diagnosis(
        state=state.state,
        cause=cause,
        ranks=ranks,
        confidence=confidence,
        since_step=state.step,
        since_t=state.last_step_t,
        evidence=tuple(_evidence(state, answer, evidence, ranks)),
        ruled_out=(*answer.ruled_out, *_ruled_out(state), *deaths.ruled_out),
        not_observed=(*by_whom, *answer.not_observed, *evidence.not_observed, *deaths.not_observed),
        details=answer,
    )


def without_contradictions(diagnosis: Diagnosis) -> Diagnosis:
    """The same one; what it names is not ruled out beside it, by whomever."""
    details = diagnosis.details if isinstance(diagnosis.details, HangAnswer) else None
    findings = details.findings if details else ()
    named = [diagnosis.cause, *(finding.kind for finding in findings)]
    left = tuple(it for it in diagnosis.ruled_out if not any(contradicts(it, name) for name in named))
    if details is None:
        return replace(diagnosis, ruled_out=left)
    kept = (it for it in details.ruled_out if not any(contradicts(it, name) for name in named))
    return replace(diagnosis, ruled_out=left, details=replace(details, ruled_out=tuple(kept)))


def _cause(state: RunState, evidence: HangEvidence) -> tuple[str, tuple[int, ...]]:
    answer, dead = evidence.answer, _dead_first(evidence)
    if answer.findings and answer.kind in MISMATCHES:
        return "hang.mismatch", answer.culprits
    if dead:
        return "hang.rank_died", dead
    if answer.findings and _lost_their_peer(answer, evidence):
        return "unknown", ()
    if answer.findings:
        return _cause_of(answer.findings[0], evidence, state), answer.culprits
    return _without_a_finding(evidence, state)


def _lost_their_peer(answer: HangAnswer, evidence: HangEvidence) -> bool:
    """Whether the ranks that no watchdog tells of, by logs alone, raised that somebody else was gone."""
    if answer.kind != "missing_ranks" or not answer.culprits or evidence.has_dumps:
        return False
    known = [evidence.known.get(rank) for rank in answer.culprits]
    return all(it is not None and it.exception is not None and is_consequence(it.exception) for it in known)


def _dead_first(evidence: HangEvidence) -> tuple[int, ...]:
    """Ranks that raised or died by themselves and, where the dumps name somebody, are those named."""
    culprits = evidence.answer.culprits
    if not culprits:
        return evidence.fallen
    return culprits if set(culprits) <= set(evidence.fallen) else ()


def _cause_of(finding: Finding, evidence: HangEvidence, state: RunState) -> str:
    if finding.kind == "completion_laggard":
        return "hang.gpu_stuck"
    if finding.kind == "no_mismatch":
        return "hang.fabric"
    standing = {evidence.standing.get(rank) for rank in finding.culprits}
    if "host" in standing:
        return "hang.host"
    if "set_up" in standing or (state.step is None and not finding.culprits):
        return "hang.init"
    return "hang.rank_missing"


def _without_a_finding(evidence: HangEvidence, state: RunState) -> tuple[str, tuple[int, ...]]:
    """What stacks, phases and steps say where the dumps name nobody."""
    if evidence.odd_ranks:
        return "hang.host", evidence.odd_ranks
    if state.step is None:
        return ("hang.init", ()) if _sets_up(evidence, state) else ("unknown", ())
    elsewhere = _elsewhere(state)
    # Of several, one may hold up the others (a broadcast of the batch within a tensor-parallel group).
    return ("hang.rank_missing", elsewhere) if len(elsewhere) == 1 else ("unknown", ())


def _sets_up(evidence: HangEvidence, state: RunState) -> bool:
    """Where no rank tells that it has made no step yet, a collective may as well be one of training."""
    if evidence.standing:
        places = set(evidence.standing.values())
        return places <= {"set_up", "collective"} and ("set_up" in places or bool(state.ranks))
    return bool(state.ranks) and all(it.phase == "start_up" for it in state.ranks.values())


def _elsewhere(state: RunState) -> tuple[int, ...]:
    """The few ranks that are in a phase without collectives while most are in one with them."""
    phases = {rank: it.phase for rank, it in state.ranks.items() if not it.speaks_for_all}
    communicating = sum(phase in _COMMUNICATING for phase in phases.values())
    if 2 * communicating <= len(phases):
        return ()
    return tuple(sorted(rank for rank, phase in phases.items() if phase in _ALONE))


def _signs(state: RunState) -> Iterable[str]:
    """What the signals alone show of single ranks; too little to accuse by."""
    if elsewhere := _elsewhere(state):
        phases = ", ".join(sorted({str(state.ranks[rank].phase) for rank in elsewhere}))
        yield f"in phase {phases}: {ranks_in_brief(elsewhere)}; most others are in a phase with collectives"
    late = [it.rank for it in state.ranks.values() if it.step is not None and it.step < (state.step or 0)]
    if any(it.speaks_for_all for it in state.ranks.values()):
        return
    if late and 2 * len(late) < len(state.ranks):
        yield f"step {state.step}, which most ranks completed, is not completed by {ranks_in_brief(late)}"


def _confidence(answer: HangAnswer, evidence: HangEvidence, cause: str, ranks: tuple[int, ...]) -> Confidence:
    if cause == "unknown":
        return "low"
    if answer.findings and answer.culprits == ranks:
        agreed = cause == "hang.host" and answer.confidence == "low"
        return "medium" if agreed else answer.confidence
    return "medium" if evidence.odd_ranks == ranks and ranks else "low"


def _evidence(
    state: RunState, answer: HangAnswer, evidence: HangEvidence, ranks: Iterable[int]
) -> Iterable[str]:
    yield step_clock(state)
    if end := ended_from_outside(state):
        yield f"every rank was ended from outside ({end}): by somebody, the scheduler or the launcher"
    if answer.findings:  # they quote stacks, exceptions and phases of their culprits themselves
        for finding in answer.findings:
            yield from finding.evidence
    else:
        known = evidence.known
        yield from (said for rank in ranks if rank in known and (said := in_words(known[rank])))
        yield from evidence.lines
        yield from _signs(state)
    yield from evidence.tally


def _ruled_out(state: RunState) -> Iterable[RuledOut]:
    if state.phase is None:
        yield RuledOut("a checkpoint, an evaluation or the start-up that takes long", "no such phase is open")
    if state.attempt == 0 or state.step is not None:
        yield RuledOut("a restart under way", f"attempt {state.attempt} has not been followed by another")
