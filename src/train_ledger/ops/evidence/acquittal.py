"""Do the dumps accuse ranks that somebody ended on their way?

What was dumped as they ended shows ranks on their way out; nobody is accused by that.
"""

from __future__ import annotations

from collections.abc import Collection

from train_ledger.answer import HangAnswer
from train_ledger.ledger import RunState
from train_ledger.ops.evidence.outside import (
    ended_from_outside,
    ends_from_outside,
    ends_in_words,
    stood_before,
)

__all__ = ["MISMATCHES", "accuses_the_ended", "acquitted"]

MISMATCHES = ("collective_type_mismatch", "size_or_syntax_mismatch", "collective_dtype_mismatch", "cycle")
"""What ranks brought, or in which order, no signal decides."""


def accuses_the_ended(state: RunState, answer: HangAnswer, fallen: Collection[int]) -> bool:
    """Whether the dumps accuse ranks that were ended from outside, and that is no sign of a hang.

    A rank on its way to an operation has not come to it when the launcher ends it. Where the run had stood
    still before, it had the time to come; that all came and none finishes is what an end looks like, too.
    `fallen` are ranks that fell by themselves.
    """
    if answer.kind in MISMATCHES:
        return False
    if answer.kind in (None, "no_mismatch"):
        some = bool(ends_from_outside(state)) and not fallen
        return ended_from_outside(state) is not None or (some and not stood_before(state))
    others = [rank for rank in answer.culprits if rank in state.ranks and rank not in fallen]
    return bool(others) and ends_from_outside(state).keys() >= {*others} and not stood_before(state)


def acquitted(answer: HangAnswer, state: RunState) -> HangAnswer:
    """The answer without its findings, and without what they ruled out: both rest on the same dumps."""
    if not answer.findings:
        return answer
    return HangAnswer(
        "cannot_tell",
        unreadable=answer.unreadable,
        missing_dumps=answer.missing_dumps,
        stale=answer.stale,
        not_observed=(ends_in_words(state), *answer.not_observed),
    )
