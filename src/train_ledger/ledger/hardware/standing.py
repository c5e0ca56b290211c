"""Where do the ranks stand, and by which clock does their host tell the time?

A rank that has not been heard in the newest attempt is where it was last: it may not come back because its
GPU failed, and then that is what has to be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from train_ledger.ledger.hardware.hardware import HostClock
from train_ledger.ledger.hardware.places import Place, host_key
from train_ledger.ledger.rank import RankFold

__all__ = ["Standing", "clocks_of"]


class Standing:
    """Since when the run is on each host."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def left(self, host: str, began_t: float) -> None:
        """A rank of an attempt that began at `began_t` by its host's clock was on that host."""
        key = host_key(host)
        self._since[key] = min(began_t, self._since.get(key, began_t))

    def places(self, ranks: Iterable[RankFold], world_size: int | None) -> list[Place]:
        """The last known place of each rank that names its host; none of ranks beyond the world's size."""
        there = [it for it in ranks if it.host and it.began_t is not None and not it.speaks_for_all]
        since = dict(self._since)
        for rank in there:
            key = host_key(rank.host or "")
            began_t = (rank.began_t or 0.0) - rank.clock.shift_s
            since[key] = min(began_t, since.get(key, began_t))
        return [
            _place(it, it.host, since[host_key(it.host)])
            for it in there
            if it.host and (world_size is None or it.rank < world_size)
        ]


def _place(rank: RankFold, host: str, since_t: float) -> Place:
    process = rank.process
    return Place(rank.rank, host, process.gpu, process.uuid, process.pci, process.pid, since_t)


def clocks_of(ranks: Iterable[RankFold], leads: Mapping[int, float]) -> HostClock:
    """What is to be added to the time of each host, by its lowest rank; nothing where no rank is."""
    add_s: dict[str, float] = {}
    for rank in sorted(ranks, key=lambda it: it.rank):
        if rank.host:
            add_s.setdefault(host_key(rank.host), rank.clock.shift_s - leads.get(rank.rank, 0.0))
    return lambda host: add_s.get(host, 0.0)
