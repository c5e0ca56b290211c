"""Was it ended from outside?

By somebody, by the scheduler or by the launcher, with a signal. Who is ended so is on its way to wherever it
was going, and may raise because of it: a compiler that it waited for got the signal as well. Neither is a
fault of that rank.
"""

from __future__ import annotations

import signal

from train_ledger.hang.verdict.rank_lines import clock
from train_ledger.ledger import RankState, RunState
from train_ledger.render import ranks_in_brief

__all__ = [
    "BY_WHOM",
    "FROM_OUTSIDE",
    "ended_from_outside",
    "ends_from_outside",
    "ends_in_words",
    "raised_as_ended",
    "stood_before",
]

FROM_OUTSIDE = {int(number): number.name for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
BY_WHOM = "and by whom does not show"
_AT_ONCE_S = 0.25
"""A signal to all of a job reaches a rank and what the rank waits for at once; a launcher that has seen a
rank fail sends its own to the others, and later."""


def ended_from_outside(state: RunState) -> str | None:
    """By what somebody, the scheduler or the launcher ended every rank; None where they did not."""
    ends = ends_from_outside(state)
    if not ends or len(ends) < max(len(state.ranks), state.world_size or 1):
        return None
    return ", ".join(sorted({*ends.values()}))


def ends_from_outside(state: RunState) -> dict[int, str]:
    """The ranks that were ended so → the signal's name, or "Ctrl-C"; not those that raised by themselves."""
    as_ended = raised_as_ended(state)
    return {rank: end for rank, it in state.ranks.items() if (end := _end(it, as_ended.get(rank)))}


def _end(rank: RankState, as_ended: str | None) -> str | None:
    if rank.exception is None or as_ended:
        return as_ended or FROM_OUTSIDE.get(rank.signal or 0)
    return "Ctrl-C" if rank.exception.startswith("KeyboardInterrupt") else None


def ends_in_words(state: RunState) -> str:
    """Who was ended from outside, as the reason why nothing more can be told."""
    ends = ends_from_outside(state)
    who = "every rank" if len(ends) == len(state.ranks) else ranks_in_brief(sorted(ends))
    were = "was" if len(ends) == 1 or who == "every rank" else "were"
    names = ", ".join(sorted({*ends.values()}))
    heard = [it.signal_t for rank in ends if (it := state.ranks[rank]).signal_t is not None]
    at = f" at {clock(min(heard))}" if heard else ""
    return f"{who} {were} ended from outside ({names}){at}, {BY_WHOM}"


def raised_as_ended(state: RunState) -> dict[int, str]:
    """The ranks that raised after a signal had come, to themselves or to others of their host → its name."""
    first = _first_signals(state)
    found = {}
    for rank, it in state.ranks.items():
        own = FROM_OUTSIDE.get(it.signal or 0)
        t, name = (it.signal_t, own) if own else first.get(it.host, (None, None))
        slack_s = _AT_ONCE_S if own else 0.0
        if name and t is not None and it.raised_t is not None and it.raised_t > t - slack_s:
            found[rank] = name
    return found


def _first_signals(state: RunState) -> dict[str | None, tuple[float, str]]:
    """For each host when the first signal from outside came to one of its ranks, and which."""
    heard = [
        (it.signal_t, name, it.host)
        for it in state.ranks.values()
        if it.host and it.signal_t is not None and (name := FROM_OUTSIDE.get(it.signal or 0))
    ]
    return {host: (t, name) for t, name, host in sorted(heard, reverse=True)}


def stood_before(state: RunState) -> bool:
    """Whether the run had stood still for longer than its limit by the time it was ended."""
    if state.last_step_t is None:
        return False
    ended_t = max(it.heard_t or 0.0 for it in state.ranks.values())
    return ended_t - state.last_step_t > state.stall_threshold_s
