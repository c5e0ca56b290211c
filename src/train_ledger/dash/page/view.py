"""What is there to show, and what is said first?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_type_hints

import msgspec

from train_ledger.answer import Diagnosis, HangAnswer, SlowAnswer
from train_ledger.dash.conditions import last_loss_finite
from train_ledger.dash.incident import Incident
from train_ledger.dash.judge import Alert
from train_ledger.dash.rules import RULES
from train_ledger.ledger.accounts import Accounts
from train_ledger.ledger.state import RankState, RunState
from train_ledger.render import duration, ranks_in_words, verdict

__all__ = ["RANK_WORDS", "Headline", "PageView", "RankRow", "headline", "rank_rows"]

Tone = Literal["trouble", "unsure", "fine", "ended"]


@dataclass(frozen=True, slots=True)
class PageView:
    """All that the page shows, as known at `state.t`.

    `accounts` are those of the whole run as they were made last, and `cannot_tell` says what of it could not
    be told tonight, for want of signals; None before the first time.
    `diagnosis` is the last verdict, which may be that of an incident that is over; `journal` holds the
    newest entries, oldest first; `not_observed` says in words what could not be read.
    """

    state: RunState
    alerts: tuple[Alert, ...] = ()
    incidents: tuple[Incident, ...] = ()
    diagnosis: Diagnosis | None = None
    journal: tuple[Mapping[str, Any], ...] = ()
    not_observed: tuple[str, ...] = ()
    accounts: Accounts | None = None
    cannot_tell: tuple[str, ...] | None = None

    @property
    def last_verdict(self) -> tuple[str | None, Diagnosis | None]:
        """The last verdict with the id of its incident; from the journal where an earlier keeper found it."""
        for entry in reversed(self.journal):
            if entry.get("kind") == "verdict":
                return entry.get("incident"), self.diagnosis or _read_diagnosis(entry.get("diagnosis"))
        return None, self.diagnosis

    @property
    def verdict_t(self) -> float | None:
        """When the last verdict was found: its figures and ages are those of that moment."""
        told = (entry.get("t") for entry in reversed(self.journal) if entry.get("kind") == "verdict")
        t = next(told, None)
        return t if isinstance(t, int | float) else None

    @property
    def current_diagnosis(self) -> Diagnosis | None:
        """The last verdict, where it is about an incident that is still open."""
        incident, diagnosis = self.last_verdict
        is_open = any(incident in (None, each.id) for each in self.incidents)
        return diagnosis if is_open else None


def _read_diagnosis(written: object) -> Diagnosis | None:
    if not isinstance(written, Mapping):
        return None
    details = written.get("details")
    is_slow = isinstance(details, Mapping) and "suspects" in details
    kinds: dict[str, Any] = {**get_type_hints(Diagnosis), "details": SlowAnswer if is_slow else HangAnswer}
    told = {
        name: value for name, value in written.items() if name in kinds and (name, value) != ("details", None)
    }
    try:
        return Diagnosis(
            **{name: msgspec.convert(value, kinds[name], str_keys=True) for name, value in told.items()}
        )
    except (msgspec.ValidationError, TypeError):  # a field is missing, or of another kind
        return None


@dataclass(frozen=True, slots=True)
class Headline:
    """The one sentence that is read first, and whether it is trouble."""

    text: str
    tone: Tone


_ORDER = {rule.name: number for number, rule in enumerate(RULES)}
"""Of alerts that came at the same moment: what stands before what only costs."""

_QUIET: Mapping[str, tuple[str, Tone]] = {
    "finished": ("the run has finished", "ended"),
    "stopped": ("the run has stopped and nobody restarts it", "trouble"),
    "restarting": ("a restart is under way", "unsure"),
    "recovering": ("recovering: work that was lost is being done again", "unsure"),
    "escalated": ("stalled again soon after a restart", "trouble"),
    "numeric_fault": ("the loss was not finite a short while ago", "trouble"),
    "hardware_fault": ("a hardware fault is known", "trouble"),
    "stalled": ("no step is being completed", "trouble"),
}


def headline(view: PageView) -> Headline:
    """What to say first: the verdict, else the page, else how the run goes.

    >>> headline(PageView(RunState("r42", t=0.0))).text
    'nothing was heard of this run yet'
    """
    state = view.state
    if (diagnosis := view.current_diagnosis) is not None:
        return Headline(verdict(diagnosis), "unsure" if diagnosis.cause in ("none", "unknown") else "trouble")
    pages = [alert for alert in view.alerts if alert.level == "page" and not alert.inhibited]
    if pages:
        first = min(pages, key=lambda alert: (alert.fired_t, _ORDER.get(alert.name, len(_ORDER))))
        return Headline(first.summary.removeprefix(f"{state.run}: "), "trouble")
    at = "no step yet" if state.step is None else f"step {state.step}"
    if state.state in _QUIET:
        text, tone = _QUIET[state.state]
        return Headline(f"{text} – {at}", tone)
    if troubled := _troubled(view):
        return Headline(f"{troubled} – no alert so far, {at}", "unsure")
    if state.step is None:
        return _without_a_step(state)
    pace = "" if state.p50_step_time_s is None else f", one every {duration(state.p50_step_time_s)}"
    return Headline(f"nothing wrong: {at}{pace}", "fine")


def _without_a_step(state: RunState) -> Headline:
    """A run that is not there, or lies elsewhere, is not one that starts well."""
    if not state.ranks:
        return Headline("nothing was heard of this run yet", "unsure")
    return Headline("starting: no step yet", "fine")


def _troubled(view: PageView) -> str:
    """What is known of ranks before it is a page: "rank 5: raised; ranks 1,3: gone"."""
    rows = rank_rows(view)
    told = ((word, [row for row in rows if row.word == word]) for word in ("gone", "raised", "not finite"))
    return "; ".join(f"{in_words(some)}: {word}" for word, some in told if some)


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
