"""How is it told what was found, and how sure is it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from train_ledger.answer import Confidence, SlowAnswer, Suspect
from train_ledger.slow.peers import Who
from train_ledger.slow.suspects.few import beside_peers
from train_ledger.slow.suspects.remedies import PART_OF_PHASE, remedy
from train_ledger.slow.suspects.view import View, seconds_in_words

__all__ = ["answer_of"]

_LONGER = 1.05
_AS_SOON = 20
"""Steps between which two changes pass for one."""


def answer_of(view: View, who: Who, cause: str, told: tuple[Suspect, ...]) -> SlowAnswer:
    """The answer with its evidence; `told` are the suspects, the cause one of them or a code of its own."""
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
        remedy=remedy(cause, who.phase if few else None, unread=few and _may_be_a_card(view, who, told)),
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
        open_ = cause == "slow.straggler.software" and _may_be_a_card(view, who, told)
        return "high" if _is_waited_for(view, who) and not open_ else "medium"
    rivals = [it for it in told if it.verdict == "confirmed" and it.cause != cause]
    most = (chosen.rise_s or 0.0) >= 0.6 * view.rise_s if view.slower else False
    return "high" if most and not rivals else "medium"


def _is_waited_for(view: View, who: Who) -> bool:
    """Whether the others wait for them, or steps became slower as these ranks did."""
    if who.waits == "confirm":
        return True
    if view.onset is None or who.since_step is None:
        return False
    first, last = view.onset.between
    return first - _AS_SOON <= who.since_step <= last + _AS_SOON


def _may_be_a_card(view: View, who: Who, told: Sequence[Suspect]) -> bool:
    """Whether a rank's longer work may be its GPU's, since nobody read that."""
    unread = any(it.cause == "slow.straggler.clock" and it.verdict == "not_observed" for it in told)
    on_cpu = all(place.host and not place.uuid and place.gpu is None for place in view.now.places)
    return unread and not on_cpu and who.phase not in PART_OF_PHASE


def _evidence(view: View, who: Who, told: Sequence[Suspect]) -> Iterator[str]:
    if view.slower and view.before_s is not None:
        yield (
            f"a step takes {seconds_in_words(view.now_s)}, {view.now_s / view.before_s:.2f} × the "
            f"{seconds_in_words(view.before_s)} of {view.compared_with}{_since(view)}"
        )
    elif view.before_s is not None:
        before = f"{seconds_in_words(view.before_s)} of {view.compared_with}"
        longer = view.now_s > _LONGER * view.before_s
        how = (
            f"more than the {before}, though no change was found that lasts"
            if longer
            else f"no longer than the {before}"
        )
        yield f"a step takes {seconds_in_words(view.now_s)}, {how}"
    if who.kind in ("rank", "host"):
        yield f"few ranks or all: few, {len(who.ranks)} of {len(who.ranks) + len(who.victims)}"
        yield from beside_peers(who)
        if who.by_log:
            yield who.reason
    else:
        yield f"few ranks or all: {who.reason}"
    for it in told:
        if it.verdict == "confirmed" and it.by != who.reason:
            yield f"{it.cause}: {it.by}"


def _since(view: View) -> str:
    if view.onset is None:
        return ""
    low, high = view.onset.between
    how = "a jump" if view.onset.shape == "jump" else "slowly"
    where = f"between {low} and {high}, " if low < high else ""
    return f", since step {view.onset.step} ({where}{how})"


def _not_observed(view: View, who: Who) -> Iterator[str]:
    if who.kind == "cannot_tell":
        yield who.reason
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
