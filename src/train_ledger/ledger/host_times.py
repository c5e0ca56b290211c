"""When, on the run's clock, did a host tell of its hardware?

Its lines carry the time of its own clock, as those of its ranks do. How far those had to be moved shows the
rest, jump by jump: a host whose clock jumped has had several offsets, and each holds for its own time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from train_ledger.facts import Fact

__all__ = ["HostTimes"]

_SAME_S = 3.0
"""What hosts are found to be ahead of each other varies by less from line to line."""

_FELL_BACK_S = 5.0
_BESIDE_S = 60.0


@dataclass(slots=True)
class _Stretch:
    """Times on a host's clock to which the same has to be added."""

    first_t: float
    last_t: float
    add_s: float

    def away_s(self, t: float) -> float:
        return max(self.first_t - t, t - self.last_t, 0.0)


class HostTimes:
    """Is shown the ranks' lines (`saw`), and then dates those that their hosts wrote, in their order."""

    def __init__(self) -> None:
        self._told: dict[str, dict[int, tuple[int, list[_Stretch]]]] = {}
        self._stretches: dict[str, list[_Stretch]] = {}
        self._read: dict[tuple[str, str], tuple[int, float]] = {}

    def saw(self, fact: Fact, t: float | None) -> None:
        """A rank's line, with its time on the run's clock; of each host one rank an attempt is enough."""
        if fact.host is None or fact.rank is None or fact.t is None or t is None:
            return
        attempts = self._told.setdefault(fact.host, {})
        rank, stretches = attempts.setdefault(fact.attempt, (fact.rank, []))
        if rank != fact.rank:
            return
        add_s = t - fact.t
        if stretches and abs(stretches[-1].add_s - add_s) < _SAME_S:
            newest = stretches[-1]
            newest.last_t, newest.add_s = max(newest.last_t, fact.t), add_s
        else:
            stretches.append(_Stretch(fact.t, fact.t, add_s))

    def dated(self, host: str, kind: str, t: float) -> float:
        """The time on the run's clock of the next line of that kind that the host wrote at `t` on its own."""
        stretches = self._of(host)
        if not stretches:
            return t
        place, before_t = self._read.get((host, kind), (0, t))
        place = _next(stretches, place, t, fell_back=t < before_t - _FELL_BACK_S)
        self._read[host, kind] = place, t
        return t + stretches[place].add_s

    def _of(self, host: str) -> list[_Stretch]:
        known = self._stretches.get(host)
        if known is None:
            attempts = self._told.get(host, {})
            known = self._stretches[host] = [it for number in sorted(attempts) for it in attempts[number][1]]
        return known


def _next(stretches: list[_Stretch], place: int, t: float, *, fell_back: bool) -> int:
    """In which stretch `t` is, after one in `place`: a clock is where it was, ahead, or has fallen back."""
    here = stretches[place]
    later: Sequence[int] = range(place + 1, len(stretches))
    if fell_back and later:
        return min(later, key=lambda it: stretches[it].away_s(t))
    if here.away_s(t) <= _BESIDE_S:  # the times after a fall were all there before it, too
        later = [it for it in later if stretches[it].first_t > here.last_t]
    return min([place, *later], key=lambda it: stretches[it].away_s(t))
