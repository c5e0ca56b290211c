"""Why are steps slow?

The seed's tree, whose first cut is "few ranks or all": by the ranks' own work beside their peers', never by
step times, which are the same on all. Few: the part of their work that is longer, then their cards and links,
else their host code. All: what takes as much longer as the step does. Each suspect is told, with its figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from train_ledger.answer import Confidence, SlowAnswer, Suspect
from train_ledger.config import Alerts
from train_ledger.slow.peers import Who
from train_ledger.slow.suspects.cards import Cards, of_clocks, of_links
from train_ledger.slow.suspects.few import beside_peers, of_software
from train_ledger.slow.suspects.memory import of_fragmentation, of_host_memory
from train_ledger.slow.suspects.network import of_communication, unheard
from train_ledger.slow.suspects.remedies import PART_OF_PHASE, remedy
from train_ledger.slow.suspects.timed import of_checkpoint, of_data, of_gc, of_logging
from train_ledger.slow.suspects.view import OWN, View, seconds_in_words
from train_ledger.slow.suspects.work import of_more_work

__all__ = ["Beside", "suspects"]

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
    if who.kind in ("rank", "host"):
        cause, told = _few(view, who, alerts, beside, of_all)
    else:
        cause, told = _all(view, who, alerts, beside, of_all)
    return _answer(view, who, cause, told)


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
    links = of_links(beside.cards, who.ranks)
    first = [it for it in (clocks, links) if it.verdict == "confirmed"]
    chosen = first[0] if first else of_software(view, who)
    others = [clocks, links, *of_all]
    told = [chosen, *(it for it in others if it.cause != chosen.cause)]
    return chosen.cause, tuple(_acquitted(it, chosen, who) for it in told)


def _acquitted(suspect: Suspect, chosen: Suspect, who: Who) -> Suspect:
    """What all ranks have more of does not say why few drag, and is told without being the cause."""
    if suspect is chosen or suspect.verdict != "confirmed" or suspect.cause.startswith("slow.straggler."):
        return suspect
    if suspect.cause == PART_OF_PHASE.get(who.phase or "") or 0 < len(suspect.ranks) <= len(who.ranks):
        return replace(suspect, ranks=who.ranks)
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
    """Whether the links of one host alone count errors, so that its own errors name it."""
    hosts = {it.host for it in cards.gpus if it.links_grown} | {it.host for it in cards.ports if it.grown}
    return links.verdict == "confirmed" and len(hosts) == 1


def _answer(view: View, who: Who, cause: str, told: tuple[Suspect, ...]) -> SlowAnswer:
    few = who.kind in ("rank", "host")
    onset = view.onset
    since = onset.step if onset else who.since_step if few else None
    answer = SlowAnswer(
        verdict=_verdict(view, who, cause),
        cause=cause,
        kind=who.kind,
        phase=who.phase if few else None,
        culprits=who.ranks if few else (),
        hosts=who.hosts if few else (),
        victims=who.victims if few else (),
        confidence=_confidence(view, who, cause, told),
        slower=view.slower,
        before_s=view.before_s,
        now_s=view.now_s,
        compared_with=view.compared_with,
        since_step=since,
        since_between=onset.between if onset else None,
        since_t=onset.t if onset else None,
        shape=onset.shape if onset else None,
        parts=view.parts,
        suspects=told,
        evidence=tuple(_evidence(view, who, told)),
        not_observed=tuple(_not_observed(view, who)),
        remedy=remedy(cause, who.phase if few else None),
    )
    return replace(answer, lost_s=_lost_s(view, who, answer))


def _verdict(view: View, who: Who, cause: str) -> Literal["slow", "not_slow", "cannot_tell"]:
    if cause not in ("none", "unknown"):
        return "slow"
    if view.slower:
        return "slow" if cause == "unknown" else "not_slow"
    return "cannot_tell" if who.kind == "cannot_tell" and view.before is None else "not_slow"


def _confidence(view: View, who: Who, cause: str, told: Sequence[Suspect]) -> Confidence:
    chosen = next((it for it in told if it.cause == cause and it.verdict == "confirmed"), None)
    if chosen is None:
        return "medium" if cause == "none" and view.before is not None else "low"
    if who.kind in ("rank", "host"):
        unread = any(it.cause == "slow.straggler.clock" and it.verdict == "not_observed" for it in told)
        has_cards = any(place.uuid for place in view.now.places)
        return "medium" if cause == "slow.straggler.software" and unread and has_cards else "high"
    if cause == "slow.communication" and unheard(view.now):
        return "low"
    rivals = [it for it in told if it.verdict == "confirmed" and it.cause != cause]
    most = (chosen.rise_s or 0.0) >= 0.6 * view.rise_s if view.slower else False
    return "high" if most and not rivals else "medium"


def _evidence(view: View, who: Who, told: Sequence[Suspect]) -> Iterator[str]:
    if view.slower and view.before_s is not None:
        yield (
            f"a step takes {seconds_in_words(view.now_s)}, {view.now_s / view.before_s:.2f} × the "
            f"{seconds_in_words(view.before_s)} of {view.compared_with}{_since(view)}"
        )
    elif view.before_s is not None:
        yield (
            f"a step takes {seconds_in_words(view.now_s)}, no longer than the "
            f"{seconds_in_words(view.before_s)} of {view.compared_with}"
        )
    if who.kind in ("rank", "host"):
        yield from beside_peers(who)
    yield f"few ranks or all: {who.reason}"
    for it in told:
        if it.verdict == "confirmed":
            yield f"{it.cause}: {it.by}"


def _since(view: View) -> str:
    if view.onset is None:
        return ""
    low, high = view.onset.between
    how = "a jump" if view.onset.shape == "jump" else "slowly"
    return f", since step {view.onset.step} (between {low} and {high}, {how})"


def _not_observed(view: View, who: Who) -> Iterator[str]:
    if who.kind == "cannot_tell":
        yield f"who drags: {who.reason}"
    if view.before is None:
        yield "earlier steps to compare with: none, so whether steps became slower cannot be said"


def _lost_s(view: View, who: Who, answer: SlowAnswer) -> float | None:
    """What the steps since then took beyond the earlier ones; of a drag without a beginning, those read."""
    if not len(view.now.steps) or answer.verdict != "slow":
        return None
    last, first = int(view.now.steps[-1]), int(view.now.steps[0])
    if view.slower:
        steps = last - (answer.since_step if answer.since_step is not None else first) + 1
        return max(0.0, steps * view.rise_s)
    steps = last - max(first, answer.since_step or first) + 1
    worst = max((it.rise_s or 0.0 for it in answer.suspects if it.verdict == "confirmed"), default=0.0)
    share_s = who.cost * view.now_s if answer.culprits else worst
    return max(0.0, steps * min(share_s, view.now_s))
