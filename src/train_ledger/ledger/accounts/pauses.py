"""When did the run save, load or evaluate, instead of stepping?

What begins and what ends a pause is paired rank by rank. A save that goes on beside the training paused it
only for as long as it says; where that is not told, the next step ends the pause.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from train_ledger.fields import read_number
from train_ledger.ledger.accounts.history import Happened
from train_ledger.ledger.accounts.laps import to_us

__all__ = ["Pause", "Pauses", "pauses_of"]

_LONGEST_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Pause:
    """Of one kind (a phase), in microseconds on the run's clock; `until_us` is None where no end is told."""

    phase: str
    since_us: int
    until_us: int | None
    rank: int | None
    attempt: int


def pauses_of(told: Iterable[tuple[int, Happened]]) -> list[Pause]:
    """The pauses that events tell of, each with its time in microseconds on the run's clock, in order."""
    open_: dict[tuple[int | None, str], tuple[int, int]] = {}
    saving: set[tuple[int | None, int, int | None]] = set()
    found: list[Pause] = []
    for t_us, it in told:
        if not it.phase:
            continue
        key = (it.rank, it.phase)
        begun = open_.get(key)
        if begun is not None and begun[1] != it.attempt:
            found.append(Pause(it.phase, begun[0], None, it.rank, begun[1]))
            del open_[key]
            begun = None
        if it.name == "ckpt_start":
            saving.add((it.rank, it.attempt, it.step))
        if it.name in ("phase_start", "ckpt_start", "eval_start"):
            open_.setdefault(key, (t_us, it.attempt))
        elif begun is not None:
            del open_[key]
            found.append(Pause(it.phase, begun[0], _end(it, begun[0], t_us), it.rank, it.attempt))
        elif (it.rank, it.attempt, it.step) not in saving:
            found.extend(_unannounced(it, t_us))
    found += [Pause(phase, since, None, rank, attempt) for (rank, phase), (since, attempt) in open_.items()]
    return sorted(found, key=lambda it: it.since_us)


def _end(it: Happened, since_us: int, t_us: int) -> int:
    blocking_s = _seconds(it, "blocking_s") if it.name == "ckpt_saved" else None
    return t_us if blocking_s is None else min(max(since_us, t_us), since_us + to_us(blocking_s))


def _unannounced(it: Happened, t_us: int) -> Iterator[Pause]:
    """Of a pause of which only the end is told: as long as it says, else it was there at all."""
    if it.name == "phase_end":
        return
    whole_s, blocking_s = _seconds(it, "duration_s"), _seconds(it, "blocking_s")
    since_us = t_us - to_us(whole_s or blocking_s or 0.0)
    lasted_s = blocking_s if blocking_s is not None else whole_s or 0.0
    yield Pause(it.phase, since_us, min(t_us, since_us + to_us(lasted_s)), it.rank, it.attempt)


def _seconds(it: Happened, key: str) -> float | None:
    value = read_number(it.details.get(key))
    return value if value is not None and 0 <= value < _LONGEST_S else None


class Pauses:
    """The pauses of one kind in one attempt, so as one rank tells them where it does, else as all do."""

    def __init__(self, pauses: Iterable[Pause], rank: int | None) -> None:
        told = list(pauses)
        own = [it for it in told if it.rank == rank]
        self._spans = _joined(own or told)
        self.edges = sorted(
            edge for since, until in self._spans for edge in {since, until} if edge is not None
        )
        self._starts = [since for since, _ in self._spans]

    def touches(self, since_us: int, until_us: int) -> bool:
        """Whether one began or ended from `since_us` on, before `until_us`."""
        return bisect_left(self.edges, until_us) > bisect_left(self.edges, since_us)

    def within_us(self, since_us: int, until_us: int) -> int:
        """For how long of this time one was under way; one without an end lasts to the end of it."""
        total = 0
        place = max(0, bisect_right(self._starts, since_us) - 1)
        for since, until in self._spans[place : bisect_left(self._starts, until_us)]:
            if until is None and since < since_us:
                continue
            total += max(0, min(until_us, until if until is not None else until_us) - max(since, since_us))
        return total

    @property
    def usual_us(self) -> float:
        """The median duration; 0 where none ended."""
        durations = self.durations_us
        return median(durations) if durations else 0.0

    @property
    def durations_us(self) -> list[int]:
        return [until - since for since, until in self._spans if until is not None and until > since]


def _joined(pauses: Iterable[Pause]) -> list[tuple[int, int | None]]:
    """Spans that do not overlap, in order."""
    joined: list[tuple[int, int | None]] = []
    for it in pauses:
        last = joined[-1] if joined else None
        if last is not None and last[1] is not None and it.since_us <= last[1]:
            until = None if it.until_us is None else max(last[1], it.until_us)
            joined[-1] = (last[0], until)
        elif last is not None and last[1] is None and it.since_us == last[0]:
            joined[-1] = (last[0], it.until_us)
        else:
            joined.append((it.since_us, it.until_us))
    return joined
