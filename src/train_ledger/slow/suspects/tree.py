"""Why are steps slow?

The seed's tree, whose first cut is "few ranks or all": by the ranks' own work beside their peers', never by
step times, which are the same on all. Few: the part of their work that is longer, then their cards and links,
else their host code. All: what takes as much longer as the step does. Each suspect is told, with its figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from train_ledger.answer import SlowAnswer, Suspect
from train_ledger.config import Alerts
from train_ledger.slow.peers import Who
from train_ledger.slow.suspects.cards import Cards, of_clocks, of_links
from train_ledger.slow.suspects.few import of_reported_clocks, of_software
from train_ledger.slow.suspects.memory import of_fragmentation, of_host_memory
from train_ledger.slow.suspects.network import of_communication, unheard
from train_ledger.slow.suspects.remedies import PART_OF_PHASE
from train_ledger.slow.suspects.telling import answer_of
from train_ledger.slow.suspects.timed import of_checkpoint, of_data, of_gc, of_logging
from train_ledger.slow.suspects.view import OWN, View
from train_ledger.slow.suspects.work import of_more_work

__all__ = ["Beside", "suspects"]

_BY_CARDS = frozenset({"compute", "host"})
"""Phases of its work that a rank's slow clocks or links make longer."""

_OF_KIND = {"stage": "slow.stage_imbalance", "sequence": "slow.sequence_imbalance", "gc": "slow.gc"}


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known besides the steps: the hardware, and the durations of the last saves (oldest first)."""

    cards: Cards = field(default_factory=Cards)
    saves_s: tuple[float, ...] = ()


def suspects(view: View, who: Who, alerts: Alerts, beside: Beside, was: Who | None = None) -> SlowAnswer:
    """The one answer; nobody is named but by `who`, who dragged before steps became slower by `was`."""
    of_all = _of_all(view, beside)
    who = _by_cards(who, beside.cards, alerts)
    explained = any(it.verdict == "confirmed" for it in of_all)
    if _as_ever(view, who, was) and (explained or who.kind not in ("rank", "host")):
        reason = f"{who.reason} – as before steps became slower"
        if who.kind in ("stage", "sequence"):
            of_all = (*of_all, Suspect(_OF_KIND[who.kind], "ruled_out", reason))
        who = Who("nobody", reason, cost=who.cost, steps=who.steps)
    if who.kind in ("nobody", "transient"):
        who = _of_the_silent(view, who, of_all)
    if who.kind in ("rank", "host"):
        cause, told = _few(view, who, alerts, beside, of_all)
    else:
        cause, told = _all(view, who, alerts, beside, of_all)
    return answer_of(view, who, cause, told)


def _by_cards(who: Who, cards: Cards, alerts: Alerts) -> Who:
    """Whom figures alone do not name, since as many others differ from them: theirs are the slow cards."""
    named = who.otherwise
    if named is None:
        return who
    slow = of_clocks(cards, named.ranks, alerts)
    if slow.verdict != "confirmed" or 2 * len(slow.ranks) < len(named.ranks):
        return who
    others = of_clocks(cards, named.victims, alerts)
    return named if others.verdict == "ruled_out" else who


def _of_the_silent(view: View, who: Who, of_all: Sequence[Suspect]) -> Who:
    """Nobody among those that tell their work is not nobody, where all of them wait longer."""
    waits = next(it for it in of_all if it.cause == "slow.communication")
    silent = unheard(view.now)
    if waits.verdict != "not_observed" or waits.rise_s is None or not silent:
        return who
    return replace(who, kind="cannot_tell", reason=silent)


def _as_ever(view: View, who: Who, was: Who | None) -> bool:
    """Whether what `who` says was so before steps became slower, and is not why they did."""
    if was is None or was.kind != who.kind or not set(who.ranks) <= set(was.ranks):
        return False
    return not view.explains(who.cost * view.now_s - was.cost * (view.before_s or 0.0))


def _of_all(view: View, beside: Beside) -> tuple[Suspect, ...]:
    """In the seed's order."""
    return (
        of_data(view),
        of_fragmentation(view),
        of_logging(view),
        of_checkpoint(view, beside.saves_s),
        of_gc(view),
        of_host_memory(view),
        of_communication(view),
    )


def _few(
    view: View, who: Who, alerts: Alerts, beside: Beside, of_all: Sequence[Suspect]
) -> tuple[str, tuple[Suspect, ...]]:
    clocks = of_clocks(beside.cards, who.ranks, alerts)
    if clocks.verdict == "not_observed":
        clocks = of_reported_clocks(view, who.ranks) or clocks
    clocks = _of_phase(clocks, who)
    links = _of_phase(of_links(beside.cards, who.ranks), who)
    first = [it for it in (clocks, links) if it.verdict == "confirmed"]
    chosen = first[0] if first else of_software(view, who)
    others = [clocks, links, *of_all]
    told = [chosen, *(it for it in others if it.cause != chosen.cause)]
    return chosen.cause, tuple(_acquitted(it, chosen, who) for it in told)


def _of_phase(suspect: Suspect, who: Who) -> Suspect:
    """Trouble of a card that is none of what its rank takes longer for does not say why it drags."""
    if suspect.verdict != "confirmed" or who.phase is None or who.phase in _BY_CARDS:
        return suspect
    by = f"not what makes these ranks drag, which is their {who.phase} – {suspect.by}"
    return replace(suspect, verdict="ruled_out", by=by)


def _acquitted(suspect: Suspect, chosen: Suspect, who: Who) -> Suspect:
    """What all ranks have more of does not say why few drag, and is told without being the cause."""
    if suspect is chosen or suspect.verdict != "confirmed" or suspect.cause.startswith("slow.straggler."):
        return suspect
    if suspect.cause == PART_OF_PHASE.get(who.phase or ""):
        return replace(suspect, ranks=who.ranks)
    if suspect.ranks and set(suspect.ranks) <= set(who.ranks):
        return suspect
    return replace(suspect, verdict="ruled_out", by=f"not what makes these ranks drag – {suspect.by}")


def _all(
    view: View, who: Who, alerts: Alerts, beside: Beside, of_all: Sequence[Suspect]
) -> tuple[str, tuple[Suspect, ...]]:
    if who.kind in _OF_KIND:
        chosen = Suspect(_OF_KIND[who.kind], "confirmed", who.reason, who.cost * view.now_s)
        if not _larger(of_all, chosen):
            return chosen.cause, (chosen, *(it for it in of_all if it.cause != chosen.cause))
    links = of_links(beside.cards, view.now.ranks)
    named = max(
        (it for it in of_all if it.verdict == "confirmed"), key=lambda it: it.rise_s or 0.0, default=None
    )
    if named is not None and named.cause == "slow.communication" and _one_place(links, beside.cards):
        return links.cause, (links, *of_all)
    if named is not None:
        return named.cause, (named, *(it for it in of_all if it is not named), links)
    if not view.slower:
        return "none", (*of_all, links)
    clocks = of_clocks(beside.cards, view.now.ranks, alerts)
    if clocks.verdict == "confirmed" and view.explains(view.rise_of(OWN)):
        return clocks.cause, (replace(clocks, ranks=()), *of_all, links)
    return of_more_work(view), (*of_all, clocks, links)


def _larger(of_all: Sequence[Suspect], chosen: Suspect) -> bool:
    """Whether something else takes more of the step; saves that became slower are news, layouts are not."""
    rivals = [it for it in of_all if it.verdict == "confirmed" and it.cause != chosen.cause]
    is_layout = chosen.cause == "slow.stage_imbalance"
    return any(
        (it.rise_s or 0.0) > (chosen.rise_s or 0.0) or (is_layout and it.cause == "slow.checkpoint")
        for it in rivals
    )


def _one_place(links: Suspect, cards: Cards) -> bool:
    """Whether the links of one host alone are in trouble, so that its own counters name it."""
    return links.verdict == "confirmed" and len(cards.hosts_in_trouble) == 1
