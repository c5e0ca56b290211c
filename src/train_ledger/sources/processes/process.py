"""Which ranks' processes on this host are gone?

A process is known by its number and by when it started, since the kernel hands the number of a dead process
to a new one. One that is a zombie is gone: it holds no GPU any more and nobody will finish its collective.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from typing import Protocol

import psutil  # type: ignore[import-untyped]

from train_ledger.facts import Event

__all__ = ["Liveness", "RankPlace", "RankProcess"]

_REUSED_SLACK_S = 900.0
"""The last line's time and the process's start may be read on clocks that differ by minutes."""

Who = tuple[int, int, int]


class RankPlace(Protocol):
    """Which process a rank is, and where; `ledger.RankState` fits."""

    @property
    def rank(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def host(self) -> str | None: ...
    @property
    def pid(self) -> int | None: ...


class RankProcess(RankPlace, Protocol):
    """And when it was heard last."""

    @property
    def heard_t(self) -> float | None: ...


class Liveness:
    """Looks at the processes of the ranks of `host` (this one, by its name) and says once what changed.

    Events are `process_seen` and `process_gone`, once a (rank, attempt, pid), with details {"pid", "why"}.
    While not one process of a run was seen alive nobody is called gone: the ranks may count their processes
    in a container of their own. `trust_unseen` takes a missing one for gone all the same.
    """

    def __init__(self, host: str | None = None, *, trust_unseen: bool = False) -> None:
        self.host = host or socket.gethostname()
        self._trusted = trust_unseen
        self._alive: dict[Who, psutil.Process] = {}
        self._gone: set[Who] = set()

    def poll(self, ranks: Iterable[RankProcess], now: float | None = None) -> list[Event]:
        """What is new about these ranks' processes; ranks of other hosts or without a pid are left out."""
        now = time.time() if now is None else now
        ours = [rank for rank in ranks if rank.host == self.host and rank.pid is not None]
        events = [self._seen(rank, now) for rank in ours]
        events += [self._lost(rank, now) for rank in ours]
        return [event for event in events if event]

    def _seen(self, rank: RankProcess, now: float) -> Event | None:
        who = _who(rank)
        if who in self._alive or who in self._gone:
            return None
        process = _living(rank)
        if process is None:
            return None
        self._alive[who] = process
        self._trusted = True
        return self._event("process_seen", who, now, {})

    def _lost(self, rank: RankProcess, now: float) -> Event | None:
        who = _who(rank)
        if who in self._gone or not self._trusted:
            return None
        process = self._alive.get(who)
        if process and _runs(process):
            return None
        self._gone.add(who)
        self._alive.pop(who, None)
        why = "its process ended" if process else "there is no such process"
        return self._event("process_gone", who, now, {"why": why})

    def _event(self, name: str, who: Who, now: float, details: dict[str, str]) -> Event:
        rank, attempt, pid = who
        return Event(now, name, rank, None, attempt, self.host, "process table", {"pid": pid, **details})


def _who(rank: RankProcess) -> Who:
    return rank.rank, rank.attempt, rank.pid or 0


def _living(rank: RankProcess) -> psutil.Process | None:
    try:
        process = psutil.Process(rank.pid)
        started = process.create_time()
    except (psutil.Error, ValueError, OverflowError):
        return None
    reused = rank.heard_t is not None and started > rank.heard_t + _REUSED_SLACK_S
    return process if _runs(process) and not reused else None


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
