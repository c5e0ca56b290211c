"""What is said of each rank, and of which first?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from train_ledger.answer import HangAnswer
from train_ledger.dash.conditions import last_loss_finite
from train_ledger.dash.page.again import goes_on_again
from train_ledger.dash.page.view import PageView
from train_ledger.ledger.state import RankState, RunState
from train_ledger.render import ranks_in_words

__all__ = ["RANK_WORDS", "RankRow", "Totals", "in_words", "rank_rows", "worst_first"]

RankWord = Literal[
    "culprit", "gone", "raised", "not finite", "behind", "silent", "waiting", "standing", "ended", "fine"
]

RANK_WORDS: tuple[RankWord, ...] = (
    "culprit",
    "gone",
    "raised",
    "not finite",
    "behind",
    "silent",
    "waiting",
    "standing",
    "ended",
    "fine",
)
"""What can be said of a rank, the worst first: it is waiting for another by the verdict; where the run stalls
and there is no verdict (yet), it is only known to be standing."""


@dataclass(frozen=True, slots=True)
class RankRow:
    """A rank and the worst that can be said of it; `detail` says more."""

    rank: RankState
    word: RankWord
    detail: str = ""


def rank_rows(view: PageView) -> list[RankRow]:
    """All ranks of the run that should be there, by rank; one that nothing was heard of is `silent`."""
    state, diagnosis = view.state, view.current_diagnosis
    if goes_on_again(view) is not None:  # who was waited for then is not to be told as waited for now
        diagnosis = None
    accused = frozenset(diagnosis.ranks if diagnosis else ())
    details = diagnosis.details if diagnosis else None
    victims_of = details.victims_of if isinstance(details, HangAnswer) else {}
    waiting = frozenset(rank for ranks in victims_of.values() for rank in ranks)
    known = state.ranks
    expected = range(state.world_size) if state.world_size is not None else ()
    ranks = sorted(known.keys() | set(expected))
    rows = (
        _row(known[rank], state)
        if rank in known
        else RankRow(RankState(rank), "silent", "nothing heard in this attempt")
        for rank in ranks
    )
    return [_judged(row, accused, waiting) for row in rows]


def _row(rank: RankState, state: RunState) -> RankRow:
    word, detail = _said(rank, state)
    return RankRow(rank, word, detail)


def _judged(row: RankRow, accused: frozenset[int], waiting: frozenset[int]) -> RankRow:
    if row.rank.rank in accused:
        return replace(row, word="culprit")
    if row.rank.rank in waiting and row.word in ("fine", "standing"):
        return replace(row, word="waiting")
    return row


def _said(rank: RankState, state: RunState) -> tuple[RankWord, str]:
    if rank.gone_t is not None and not rank.ended:
        return "gone", f"signal {rank.signal}" if rank.signal is not None else "process gone"
    if rank.exception is not None:
        return "raised", rank.exception
    if not last_loss_finite(rank):
        return "not finite", f"the loss of step {rank.nonfinite_step}"
    if rank.ended:
        return "ended", ""
    behind = (state.step or 0) - (rank.step or 0)
    if rank.step is not None and behind > _in_order(state):
        return "behind", f"{behind} step{'s' if behind > 1 else ''} behind"
    return ("standing" if _stalls(state) else "fine"), ""


def _stalls(state: RunState) -> bool:
    return state.stalled_for_s > state.stall_threshold_s and not state.finished


def _in_order(state: RunState) -> int:
    """Steps that a rank may be behind the median: lines of a run that moves do not arrive at one moment."""
    return 0 if _stalls(state) else 1


def worst_first(rows: list[RankRow]) -> list[RankRow]:
    """The same rows, those with the most to say first."""
    order = {word: number for number, word in enumerate(RANK_WORDS)}
    return sorted(rows, key=lambda row: (order[row.word], row.rank.rank))


def in_words(rows: list[RankRow]) -> str:
    """Which ranks these are."""
    return ranks_in_words(row.rank.rank for row in rows)


@dataclass(frozen=True, slots=True)
class Totals:
    """How many ranks are said what of, the worst first."""

    counts: Mapping[RankWord, int] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: list[RankRow]) -> Totals:
        found = {word: sum(row.word == word for row in rows) for word in RANK_WORDS}
        return cls({word: count for word, count in found.items() if count})
