"""What came before the trouble that is seen, and brought it about?

A run that stands, or that is restarted again and again, shows its last trouble. What logs, kernels and the
ranks themselves told before is asked in the order in which one can follow from the other: results that are no
numbers, a failed save, a GPU, what a rank raised. Whoever only waited is told as what followed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from train_ledger.answer import Diagnosis
from train_ledger.ops.causes.earlier import Story, brought_about_by, of_loss_before
from train_ledger.ops.evidence.outside import BY_WHOM, stood_before
from train_ledger.ops.seen import Seen
from train_ledger.ops.troubles import FirstCause, Told, Trouble, first_cause
from train_ledger.ops.troubles.lines import (
    ENDED,
    first_lines,
    outside_lines,
    victims_ruled_out,
)

__all__ = ["Traced", "traced_back", "with_first"]

_MAY_FOLLOW = ("hang.", "unknown", "hardware.")
_SCHEDULER = f"{ENDED}the scheduler "
_RAISED = re.compile(r"rank (\d{1,9})\b[^:]*: (?:it raised |its process is gone)")


class Traced(NamedTuple):
    """The diagnosis, and how many seconds nothing was done, where logs tell that it is over."""

    diagnosis: Diagnosis
    lost_s: float | None = None


def traced_back(seen: Seen, found: Diagnosis, told: Told) -> Traced:
    """The first cause of a hang or a death, with its line; what was found where nothing precedes it."""
    if not found.cause.startswith(_MAY_FOLLOW):
        return Traced(found)
    some = told.within(seen.since_t)
    first = first_cause(some, seen.world)
    story = Story(seen, first)
    loss = of_loss_before(story, found)
    if loss is not None:
        earlier = loss
    elif first is not None:
        earlier = with_first(brought_about_by(story, found), first)
    else:
        earlier = _ended_by(seen, some, found)
    earlier = replace(earlier, not_observed=(*earlier.not_observed, *told.not_read))
    return Traced(earlier, _lost_s(seen, first, told))


def _ended_by(seen: Seen, some: Sequence[Trouble], found: Diagnosis) -> Diagnosis:
    """Nothing went wrong but that somebody ended it; where the scheduler says so, it is known by whom."""
    lines = tuple(outside_lines(some))
    if lines and stood_before(seen.state):
        lines = (
            *lines,
            "it had stood still for longer than its limit before it was ended: why, nothing tells",
        )
    by = [line.removeprefix(ENDED) for line in lines if _SCHEDULER in line]
    if not by:
        return replace(found, evidence=(*lines, *found.evidence))
    said = [it.replace(BY_WHOM, f"since {by[0]}") for it in found.not_observed]
    said = said if any(it.endswith(by[0]) for it in said) else [by[0], *said]
    return replace(found, evidence=(*lines, *found.evidence), not_observed=tuple(said))


def with_first(found: Diagnosis, first: FirstCause) -> Diagnosis:
    """The diagnosis with the lines of the first cause in front, and its victims ruled out.

    Hardware that is known to be the cause says itself which GPU it is, before its line.
    """
    lines = tuple(first_lines(first))
    head = 1 if found.cause.startswith("hardware.") and found.confidence == "high" else 0
    told = {it.rank for it in (*first.first, *first.others)}
    kept = (it for it in found.evidence[head:] if it not in lines and _raised_by(it) not in told)
    owned = [f"process {it.pid} killed for want of memory" for it in first.first if it.rank is not None]
    return replace(
        found,
        evidence=(*found.evidence[:head], *lines, *kept),
        ruled_out=(*found.ruled_out, *victims_ruled_out(first)),
        not_observed=tuple(it for it in found.not_observed if not any(said in it for said in owned)),
    )


def _raised_by(line: str) -> int | None:
    """Whose exception or end a line tells that the first cause tells better."""
    match = _RAISED.match(line)
    return int(match[1]) if match else None


def _lost_s(seen: Seen, first: FirstCause | None, told: Told) -> float | None:
    """From the first cause to when all were said to have ended; None where the run may still stand."""
    if not seen.state.by_logs or told.over_t is None:
        return None
    since_t = seen.state.last_step_t
    if since_t is None:
        since_t = first.t if first is not None else None
    is_over = told.last_step_t is None or told.last_step_t <= told.over_t
    return max(0.0, told.over_t - since_t) if since_t is not None and is_over else None
