"""What was put on record since people were last told?

Alerts of level record wake nobody. They are told together, `[notify] digest_s` after the first of them or
when the run is over: how often each fired, where, when first and when last. Made of the journal's transitions
alone, so that a keeper that was killed goes on with the same digest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from train_ledger.config import Notify
from train_ledger.dash import Alert, Notification, Transition
from train_ledger.render import harmless, ranks_in_words

__all__ = ["Digest", "is_digest"]

_PREFIX = "digest-"
_MOST_PLACES = 8


def is_digest(message: str) -> bool:
    """Whether a message id is that of a digest."""
    return message.startswith(_PREFIX)


@dataclass(slots=True)
class _Line:
    """One alert in a digest."""

    first_t: float
    last_t: float
    count: int = 0
    summary: str = ""
    ranks: set[int] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)

    def take(self, alert: Alert, t: float) -> None:
        self.count += 1
        self.last_t = max(self.last_t, t)
        self.summary = alert.summary
        rank, host = alert.labels.get("rank", ""), alert.labels.get("host")
        if rank.isdecimal():
            self.ranks.add(int(rank))
        if host:
            self.hosts.add(host)

    def text(self, name: str) -> str:
        when = _moment(self.first_t)
        if self.count > 1:
            when = f"{self.count} times, first {when}, last {_moment(self.last_t)}"
        places = [ranks_in_words(self.ranks)] if self.ranks else []
        places += [f"host {_few(sorted(self.hosts))}"] if self.hosts else []
        where = f" on {', '.join(places)}" if places else ""
        return f"{name}{where}: {when}; the last: {self.summary}"


@dataclass(slots=True)
class Digest:
    """The records that nobody was told of yet, by the name of the alert."""

    _lines: dict[str, _Line] = field(default_factory=dict)

    def take(self, transition: Transition) -> None:
        """Note one that fired on record; pages, inhibited ones and ends are left out."""
        alert, t = transition.alert, transition.t
        if transition.kind == "fired" and alert.level == "record" and not alert.inhibited:
            self._lines.setdefault(alert.name, _Line(t, t)).take(alert, t)

    def told(self, message: str) -> None:
        """A message of this id was handed over; if it was a digest, the next one begins empty."""
        if is_digest(message):
            self._lines.clear()

    def is_due(self, t: float, digest_s: float, *, finished: bool = False) -> bool:
        """Whether there is something to tell, and it is time to."""
        return bool(self._lines) and (finished or t - self._began_t >= digest_s)

    def message(self, notify: Notify, run: str) -> Notification:
        """What is to be told; the same id for the same records, so that an outbox sends it once.

        Raises ValueError where there is nothing to tell.
        """
        counts = [f"{name} ×{line.count}" for name, line in self._lines.items()]
        return Notification(
            id=f"{_PREFIX}{datetime.fromtimestamp(self._began_t, UTC):%Y%m%dT%H%M%S%fZ}",
            title=harmless(f"{run}: on record: {', '.join(counts)}"),
            body="\n".join(harmless(line.text(name), longest=600) for name, line in self._lines.items()),
            level="record",
            urls=notify.digest_urls,
            timeout_s=notify.timeout_s,
            details={"run": run, "alerts": {name: line.count for name, line in self._lines.items()}},
        )

    @property
    def _began_t(self) -> float:
        return min(line.first_t for line in self._lines.values())


def _moment(t: float) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%SZ}"


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MOST_PLACES} more" if len(listed) > _MOST_PLACES else ""
    return ", ".join(listed[:_MOST_PLACES]) + more
