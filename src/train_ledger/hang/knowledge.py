"""What else is known of a rank, besides its dump and its stack?

Handed in by whoever knows the run: its last signal line, whether its process is gone, what it raised. The
first rank to fall is wanted: one that raised because a peer's connection closed, that the launcher ended, or
that gloo aborted because a peer sent too much, is a victim.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from train_ledger.render import harmless

__all__ = ["RankKnowledge", "first_fallen", "in_words"]


@dataclass(frozen=True, slots=True)
class RankKnowledge:
    """What the run's own files say of one rank; None or False where they say nothing.

    `exception` is "Type: message", `signal` the number of the signal that ended the process, `ended` that the
    rank itself said that its run ended.
    """

    rank: int
    host: str | None = None
    step: int | None = None
    phase: str | None = None
    gone: bool = False
    ended: bool = False
    exception: str | None = None
    signal: int | None = None


_CONSEQUENCES = (
    "keyboardinterrupt",
    "connection closed",
    "connection reset",
    "connection refused",
    "broken pipe",
    "remote process exited",
    "socket timeout",
    "timed out waiting",
    "watchdog",
    "communicator was aborted",
    "nccl communicator encountered error",
    "no route to host",
)
_DONE_TO_IT = (signals.SIGTERM, signals.SIGINT, signals.SIGABRT)


def first_fallen(known: Mapping[int, RankKnowledge], world: Collection[int]) -> tuple[int, ...]:
    """The ranks that fell by themselves; empty where a death can as well be a consequence.

    First those that say why. Else few ranks that are gone without a word, or that said that their run ended,
    while the others go on, or tell of a closed connection or of the launcher's signal.
    """
    by_reason = [rank for rank, it in known.items() if _fell_by_itself(it)]
    if by_reason:
        return tuple(sorted(by_reason))
    gone = [rank for rank, it in known.items() if it.gone and it.exception is None and it.signal is None]
    silent = [rank for rank in gone if not known[rank].ended]
    left = silent or [rank for rank, it in known.items() if it.ended and it.signal is None]
    return tuple(sorted(left)) if 2 * len(left) < max(len(world), len(known)) else ()


def _fell_by_itself(rank: RankKnowledge) -> bool:
    if rank.exception is not None:
        return not any(word in rank.exception.lower() for word in _CONSEQUENCES)
    return rank.signal is not None and rank.signal not in _DONE_TO_IT


def in_words(rank: RankKnowledge) -> str | None:
    """One evidence line; None where nothing is known.

    >>> in_words(RankKnowledge(5, step=41, phase="data", gone=True, signal=9))
    'rank 5 at step 41, in phase data: its process is gone (SIGKILL)'
    """
    places = [
        f"on {rank.host}" if rank.host else "",
        f"at step {rank.step}" if rank.step is not None else "",
        f"in phase {rank.phase}" if rank.phase else "",
    ]
    ends = ["it said that its run ended"] if rank.ended else []
    if rank.gone or rank.signal is not None:
        ends.append("its process is gone" + (f" ({_signal(rank.signal)})" if rank.signal is not None else ""))
    if rank.exception:
        ends.append(f"it raised {harmless(rank.exception, longest=200)}")
    place = ", ".join(it for it in places if it)
    end = "; ".join(ends)
    return (
        f"rank {rank.rank}" + (f" {place}" if place else "") + (f": {end}" if end else "")
        if place or end
        else None
    )


def _signal(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
