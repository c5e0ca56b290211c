"""Which of what was told before brought the trouble about: losses, a save, a GPU, the network, a rank?

Each is asked what it would make of the trouble, in the order in which one can follow from the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from train_ledger.answer import Confidence, Diagnosis, HangAnswer
from train_ledger.ops.causes.loss import of_loss
from train_ledger.ops.seen import Seen
from train_ledger.ops.troubles import FirstCause
from train_ledger.ops.troubles.lines import followed_lines

__all__ = ["Story", "brought_about_by", "gpus_told", "of_loss_before"]

_NETWORK = re.compile(r"NET/IB|net_ib|ibv_|NET/OFI")
_STEPS_BEHIND = 3
_LOWER: Mapping[Confidence, Confidence] = {"high": "medium", "medium": "low", "low": "low"}


@dataclass(frozen=True, slots=True)
class Story:
    """What was seen of a run, and the first cause that was told of it, where one was."""

    seen: Seen
    first: FirstCause | None


def of_loss_before(story: Story, found: Diagnosis) -> Diagnosis | None:
    """The run was given up after losses that were no numbers: what it raised then follows from these."""
    state = story.seen.state
    bad = [it for it in state.ranks.values() if it.nonfinite_since_t is not None]
    newest = max((it.nonfinite_step or 0 for it in bad), default=None)
    was_given_up = story.first is not None or found.cause == "unknown"
    if newest is None or not was_given_up or found.cause.startswith(("hardware.", "hang.mismatch")):
        return None
    if (state.step or 0) - newest > _STEPS_BEHIND or _is_before(story.first, min(map(_since, bad))):
        return None
    loss = of_loss(story.seen)
    then = () if story.first is None else tuple(followed_lines(story.first, loss.since_t))
    return replace(loss, evidence=(f"first cause: {loss.evidence[0]}", *then, *loss.evidence[1:]))


def _since(rank: object) -> float:
    return float(getattr(rank, "nonfinite_since_t", None) or 0.0)


def _is_before(first: FirstCause | None, t: float) -> bool:
    return first is not None and not first.is_sign and first.t is not None and first.t < t - 1.0


def _of_save_before(story: Story, found: Diagnosis) -> Diagnosis | None:
    """A save failed, and what followed has come of it."""
    first = story.first
    if first is None or first.is_sign or found.cause.startswith("hardware."):
        return None
    ranks = [story.seen.state.ranks.get(it.rank) for it in first.first if it.rank is not None]
    in_saves = bool(ranks) and all(it is not None and it.phase == "checkpoint_save" for it in ranks)
    if first.kind != "checkpoint_failed" and not in_saves:
        return None
    return replace(
        found, cause="checkpoint_failing", ranks=(), hosts=(), confidence="medium", since_t=first.t
    )


def _of_gpu_told(story: Story, found: Diagnosis) -> Diagnosis | None:
    """An XID on a host of the run: the host is what can be named where it is not known whose GPU it is."""
    first = story.first
    if first is None or first.kind != "xid" or found.cause.startswith(("hardware.", "hang.mismatch")):
        return None
    if not first.ranks and not _may_be_ours(story.seen, first.hosts):
        return None
    return replace(
        found,
        cause="hardware.xid",
        ranks=first.ranks,
        hosts=first.hosts,
        gpus=gpus_told(first),
        confidence="medium" if story.seen.state.ranks else "low",
        since_t=found.since_t if found.since_t is not None else first.t,
    )


def _of_network(story: Story, found: Diagnosis) -> Diagnosis | None:
    """A host's adapter tells of an error: who raised because of that, or came no more, is not to blame."""
    first = story.first
    if first is None or not first.is_sign or _NETWORK.search(first.first[0].said) is None:
        return None
    if found.cause not in ("unknown", "hang.rank_missing") or story.seen.has_dumps:
        return None
    lost = {it.rank for it in (*first.first, *first.others, *first.later) if it.kind != "watchdog_timeout"}
    if not lost >= {*found.ranks}:
        return None
    return replace(
        found, cause="hang.fabric", ranks=(), hosts=(), confidence="low", details=_of_nobody(found.details)
    )


def _of_nobody(details: object) -> Any:
    """The answer without its findings, which name somebody; as it is where it is none of a hang."""
    if not isinstance(details, HangAnswer):
        return details
    kept = replace(details, verdict="cannot_tell", culprits=(), kind=None, findings=(), victims_of={})
    return replace(kept, seq=None, op=None, group=None)


def gpus_told(first: FirstCause) -> tuple[str, ...]:
    """The addresses of the GPUs that kernels name."""
    return tuple(sorted({it.pci for it in first.first if it.pci}))


def _may_be_ours(seen: Seen, hosts: tuple[str, ...]) -> bool:
    """Whether ranks may be on GPUs of these hosts: some do not say on which they are."""
    known = [it for it in seen.state.ranks.values() if it.host]
    here = [it for it in known if it.host in hosts]
    return not known or any(it.pci is None for it in here)


def _of_fallen(story: Story, found: Diagnosis) -> Diagnosis | None:
    """Ranks raised or were killed before all others fell; where all ran into the same, nobody is to blame."""
    first = story.first
    if first is None or first.is_sign or found.cause.startswith(("hardware.", "hang.mismatch")):
        return None
    if first.kind in ("xid", "checkpoint_failed") or not _may_decide(story, found, first):
        return None
    is_same = found.cause == "hang.rank_died" and found.ranks == first.ranks
    confidence: Confidence = found.confidence if is_same else "medium"
    if any(it.rank is not None and it.rank not in first.ranks for it in first.others):
        confidence = _LOWER[confidence]
    return replace(
        found,
        cause="hang.rank_died",
        ranks=first.ranks,
        hosts=() if first.ranks else first.hosts,
        confidence="medium" if first.of_all else confidence,
        details=_of_nobody(found.details) if first.of_all else found.details,
        since_t=found.since_t if found.since_t is not None else first.t,
    )


def _may_decide(story: Story, found: Diagnosis, first: FirstCause) -> bool:
    """Dumps that name others say who did not come, and are believed."""
    answer = found.details
    if not isinstance(answer, HangAnswer) or not answer.culprits or not story.seen.has_dumps:
        return True
    return set(answer.culprits) <= {it.rank for it in first.first}


def _of_loop_told(story: Story, found: Diagnosis) -> Diagnosis | None:
    """Logs tell of attempts that never came to a step, in which the launcher began again and again."""
    first, alerts = story.first, story.seen.config.alerts
    if first is None or first.is_sign or not story.seen.state.by_logs:
        return None
    window_s = alerts.restart_loop_window_s
    begun = {it.attempt for it in first.later if it.attempt > first.first[0].attempt}
    is_quick = all(it.t is None or first.t is None or it.t - first.t <= window_s for it in first.later)
    if len(begun) < alerts.restart_loop_count or not is_quick:
        return None
    hosts = () if first.ranks else first.hosts
    return replace(
        found, cause="restart_loop", ranks=first.ranks, hosts=hosts, confidence="medium", since_t=first.t
    )


_EARLIER: tuple[Callable[[Story, Diagnosis], Diagnosis | None], ...] = (
    _of_save_before,
    _of_gpu_told,
    _of_network,
    _of_loop_told,
    _of_fallen,
)
"""In the order in which one brings about the next; the first that holds is the cause."""


def brought_about_by(story: Story, found: Diagnosis) -> Diagnosis:
    """The trouble as what came before makes it; as it was found where nothing did."""
    return next((it for row in _EARLIER if (it := row(story, found)) is not None), found)
