"""On which host does each rank run, and are its lines wanted?

ranks.jsonl tells it, and the rank's own run_start, which is newer.
"""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["RankHosts"]


class RankHosts:
    """`of` is where each rank runs, as far as is known.

    `hosts` are those whose ranks are wanted (None: all).
    """

    def __init__(self, hosts: Collection[str] | None = None) -> None:
        self._hosts = None if hosts is None else frozenset(hosts)
        self._placed: dict[int, str] = {}
        self._started: dict[int, int] = {}
        self.of: dict[int, str] = {}

    def is_wanted(self, host: str | None) -> bool:
        """Whether ranks of this host are wanted; those of which it is not known are."""
        return self._hosts is None or host is None or host in self._hosts

    def placed(self, rank: int, host: str) -> None:
        """A line of ranks.jsonl says where a rank runs."""
        self.of[rank] = self._placed[rank] = host

    def started(self, rank: int, host: str, attempt: int) -> None:
        """A rank said run_start there."""
        self.of[rank] = host
        self._started[rank] = attempt

    def behind_gap(self, rank: int, attempt: int) -> None:
        """Lines of a rank were left out, and it goes on in this attempt, which may be on another host."""
        if attempt == self._started.get(rank):
            return
        if rank in self._placed:
            self.of[rank] = self._placed[rank]
        else:
            self.of.pop(rank, None)
