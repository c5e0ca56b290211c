"""Which firings are one matter, that one person can see to by day?

The same alert on the same host of the same run: a host is what a person drains, mends, or hands over. What is
of no host is of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from train_ledger.ops.weekly.firings import Firing, Firings

__all__ = ["Matter", "matters_of"]


@dataclass(frozen=True, slots=True)
class Matter:
    """How often it fired and how long in all (seconds), on which ranks, GPUs and devices of which host.

    `before` is how often it fired in as long a time before, None where the journal does not reach back so
    far. `days` counts firings by their day (UTC). `summary` is that of the last firing.
    """

    name: str
    level: str
    host: str
    times: int
    lasted_s: float
    is_open: bool
    first_t: float
    last_t: float
    summary: str
    ranks: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    before: int | None = None
    days: Mapping[str, int] = field(default_factory=dict)

    @property
    def trend(self) -> str:
        """In a word: "more", "fewer", "as many", "new"; "" where there is nothing to compare with."""
        if self.before is None:
            return ""
        if not self.before:
            return "new"
        return "more" if self.times > self.before else "fewer" if self.times < self.before else "as many"


def matters_of(found: Firings, since_t: float, until_t: float) -> tuple[Matter, ...]:
    """The matters of a stretch of time, those that lasted longest first; what was inhibited is left out."""
    length_s = until_t - since_t
    alike: dict[tuple[str, str, str], list[Firing]] = {}
    earlier: Counter[tuple[str, str, str]] = Counter()
    for it in found.firings:
        if it.inhibited:
            continue
        if it.touches(since_t, until_t):
            alike.setdefault(_key(it), []).append(it)
        elif it.touches(since_t - length_s, since_t):
            earlier[_key(it)] += 1
    reaches = found.first_t is not None and found.first_t <= since_t - length_s
    matters = [
        _matter(key, members, earlier[key] if reaches else None, since_t, until_t)
        for key, members in alike.items()
    ]
    return tuple(sorted(matters, key=lambda it: (-it.lasted_s, -it.times, it.name, it.host)))


def _key(it: Firing) -> tuple[str, str, str]:
    return it.level, it.name, it.labels.get("host", "")


def _matter(
    key: tuple[str, str, str], members: Sequence[Firing], before: int | None, since_t: float, until_t: float
) -> Matter:
    level, name, host = key
    ranks = {int(rank) for rank in _labels(members, "rank") if rank.isdecimal() and len(rank) < 10}
    days = Counter(_day(max(it.since_t, since_t)) for it in members)
    return Matter(
        name=name,
        level=level,
        host=host,
        times=len(members),
        lasted_s=sum(it.seconds_in(since_t, until_t) for it in members),
        is_open=any(it.until_t is None or it.until_t > until_t for it in members),
        first_t=members[0].since_t,
        last_t=members[-1].since_t,
        summary=members[-1].summary,
        ranks=tuple(sorted(ranks)),
        gpus=tuple(sorted(set(_labels(members, "gpu")))),
        devices=tuple(sorted(set(_labels(members, "device")))),
        before=before,
        days=dict(sorted(days.items())),
    )


def _labels(members: Iterable[Firing], label: str) -> Iterable[str]:
    return (value for it in members if (value := it.labels.get(label)))


def _day(t: float) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d}"
