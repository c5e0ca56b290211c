"""What can it not be, by the dumps?

What is ruled out is never what is named: where logs or a death name what the dumps alone would rule out, the
dumps have not seen it all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from train_ledger.answer import Finding, RuledOut
from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.roots import Roots
from train_ledger.hang.verdict.evidence import Evidence

__all__ = ["contradicts", "ruled_out"]

_HANGS = "a collective that hangs"
_DIFFERS = "mismatch of operation, size or type"
_CIRCLE = "ranks that wait for each other"
_FABRIC = "the fabric"
_ABSENT = "a rank that did not come"

_NAMED_BY = {
    "missing_ranks": {_HANGS, _ABSENT},
    "p2p_unpaired": {_HANGS, _ABSENT},
    "cycle": {_HANGS, _CIRCLE},
    "no_mismatch": {_HANGS, _FABRIC},
    "completion_laggard": {_HANGS},
    "collective_type_mismatch": {_HANGS, _DIFFERS},
    "size_or_syntax_mismatch": {_HANGS, _DIFFERS},
    "collective_dtype_mismatch": {_HANGS, _DIFFERS},
    "hang.mismatch": {_HANGS, _DIFFERS},
    "hang.fabric": {_HANGS, _FABRIC},
    "hang.rank_missing": {_HANGS, _ABSENT},
    "hang.host": {_HANGS, _ABSENT},
    "hang.rank_died": {"hang.rank_died", _ABSENT},
    "hang.gpu_stuck": {_HANGS},
    "hardware.xid": {"hardware.xid"},
    "restart_loop": {"a restart under way"},
}
"""What a kind of finding, or a cause, says to be so."""


def contradicts(out: RuledOut, named: str) -> bool:
    """Whether it rules out what this kind of finding (or this cause of `answer.CAUSES`) names.

    >>> contradicts(RuledOut("the fabric", "…"), "no_mismatch")
    True
    """
    return out.cause == named or out.cause in _NAMED_BY.get(named, ())


def ruled_out(
    findings: Sequence[Finding],
    found: Roots,
    views: Sequence[GroupView],
    evidence: Evidence,
    gaps: Sequence[str],
) -> Iterator[RuledOut]:
    """What the dumps exclude, but for what the findings name."""
    kinds = {finding.kind for finding in findings}
    for out in _by_dumps(found, views, evidence, gaps):
        if not any(contradicts(out, kind) for kind in kinds):
            yield out


def _by_dumps(
    found: Roots, views: Sequence[GroupView], evidence: Evidence, gaps: Sequence[str]
) -> Iterable[RuledOut]:
    if not evidence.dumps:
        return
    kinds = {root.kind for root in found.roots}
    if not views:
        if not gaps:
            yield RuledOut(_HANGS, f"nothing is pending in {_counted(evidence.dumps)}")
        return
    yield RuledOut(
        _DIFFERS, f"at the first pending number of {_groups(views)} all that came brought the same"
    )
    yield RuledOut(_CIRCLE, "the waits of all groups lead to an end")
    is_seen = all(root.seen for root in found.roots)
    if kinds & {"missing_ranks", "p2p_unpaired"} and is_seen:
        yield RuledOut(_FABRIC, "who waits, waits for a rank that has not come")
    if kinds == {"no_mismatch"}:
        yield RuledOut(_ABSENT, "every member issued the pending operation")


def _counted(dumps: Collection[int]) -> str:
    return "the one dump" if len(dumps) == 1 else f"{len(dumps)} dumps"


def _groups(views: Sequence[GroupView]) -> str:
    return views[0].label if len(views) == 1 else f"each of {len(views)} groups"
