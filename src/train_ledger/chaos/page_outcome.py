"""Did the page of a drill come once, in time, and to everybody who was to be told?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from train_ledger.chaos.webhook import Arrival
from train_ledger.render import harmless

__all__ = ["WITHIN_S", "DrilledPath", "as_object", "as_text", "judge"]

WITHIN_S = 20.0
"""The design's promise: so long after its threshold a stall is notified at the latest."""

_EARLY_S = 1.0
_MOST_LINES = 8
_WAYS = {"embedded": "train-ledger watch", "prometheus": "Prometheus and Alertmanager"}


@dataclass(frozen=True, slots=True)
class DrilledPath:
    """One way of a page, "embedded" or "prometheus".

    `notified_s` is from the last step to the first message, None where none came; `why_not` says in words
    what was not as promised.
    """

    path: str
    threshold_s: float
    notified_s: float | None
    messages: int
    message: str
    why_not: str | None = None
    within_s: float = WITHIN_S

    @property
    def ok(self) -> bool:
        """Exactly one message, not before the threshold, at most `within_s` after it, and all took it."""
        return self.why_not is None


def judge(
    path: str,
    threshold_s: float,
    stopped_t: float,
    arrivals: Sequence[Arrival],
    others: str | None = None,
    *,
    within_s: float = WITHIN_S,
) -> DrilledPath:
    """What came of a run whose last step was completed at `stopped_t` (unix seconds).

    `others` says in words what else went wrong: another address did not take it, or how far it came.
    """
    notified_s = round(arrivals[0].t - stopped_t, 1) if arrivals else None
    message = _words(arrivals[0]) if arrivals else ""
    drilled = DrilledPath(path, threshold_s, notified_s, len(arrivals), message, within_s=within_s)
    why_not = "; ".join(each for each in (_why_not(drilled), others) if each)
    return dataclasses.replace(drilled, why_not=why_not or None)


def _why_not(drilled: DrilledPath) -> str | None:
    if drilled.notified_s is None:
        return "no message came"
    late_s = drilled.notified_s - drilled.threshold_s
    if "TrainingStepStalled" not in drilled.message:
        return "the message does not speak of the stall"
    if drilled.messages > 1:
        return f"{drilled.messages} messages instead of one"
    if late_s < -_EARLY_S:
        return "the message came before the threshold"
    if late_s > drilled.within_s:
        return f"the message came {late_s:.1f} s after the threshold"
    return None


def _words(arrival: Arrival) -> str:
    """What a message says, of apprise's JSON or Alertmanager's."""
    body = arrival.body if isinstance(arrival.body, dict) else {}
    if isinstance(alerts := body.get("alerts"), list):
        return "; ".join(f"{it['labels']['alertname']}: {it['annotations'].get('summary')}" for it in alerts)
    return f"{body.get('title', '')}\n{body.get('message', '')}".strip()


def as_object(drilled: DrilledPath) -> dict[str, Any]:
    """For JSON."""
    return {**dataclasses.asdict(drilled), "ok": drilled.ok}


def as_text(drilled: DrilledPath) -> str:
    """For a person: whether it was as promised, and the message."""
    way = _WAYS[drilled.path]
    if drilled.notified_s is None:
        return f"NOT NOTIFIED by {way}: {drilled.why_not}"
    head = "ok" if drilled.ok else f"NOT AS PROMISED ({drilled.why_not})"
    late_s = drilled.notified_s - drilled.threshold_s
    lines = [
        f"{head}: notified by {way} {drilled.notified_s:.1f} s after the last step, {late_s:.1f} s after the "
        f"threshold (at most {drilled.within_s:.0f} s)"
    ]
    lines += [f"    {harmless(line, longest=500)}" for line in drilled.message.splitlines()[:_MOST_LINES]]
    return "\n".join(lines)
