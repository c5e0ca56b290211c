"""Which process is a rank, on which GPU, and how did it end?"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from train_ledger.facts import Event

__all__ = ["RankProcess"]

_ASKING = (signal.SIGUSR1, signal.SIGUSR2)


@dataclass(slots=True)
class RankProcess:
    """What a rank said of its process in one attempt, and what is known of its end.

    `raised_t` and `signal_t` are on its host's clock, carried over jumps; `gone_t` is on rank 0's, which is
    that of the one who looked.
    """

    gpu: int | None = None
    uuid: str | None = None
    pci: str | None = None
    pid: int | None = None
    worker_server: str | None = None
    ended: bool = False
    gone_t: float | None = None
    exception: str | None = None
    raised_t: float | None = None
    signal: int | None = None
    signal_t: float | None = None

    def start(self, details: Mapping[str, Any]) -> None:
        """It said run_start, with these details."""
        self.gpu = _whole(details.get("gpu"))
        self.uuid = _text(details.get("uuid"))
        self.pci = _text(details.get("pci"))
        self.pid = _whole(details.get("pid"))
        self.worker_server = _text(details.get("worker_server"))
        self.gone_t = None
        self._unend()

    def completed_step(self, t: float) -> None:
        """It completed a step at `t`, which nobody does who has ended."""
        if self.ended or self.exception or self.signal:
            self._unend()
        if self.gone_t is not None and t > self.gone_t:
            self.gone_t = None

    def raised(self, details: Mapping[str, Any], t: float) -> None:
        self.exception, self.raised_t = _exception(details), t

    def got_signal(self, number: object, t: float) -> None:
        """The first one that ends it is what ended it; some only ask it for a dump."""
        whole = _whole(number)
        if whole is not None and whole not in _ASKING and self.signal is None:
            self.signal, self.signal_t = whole, t

    def looked_at(self, fact: Event) -> None:
        """Somebody looked into the process table; that of another process says nothing."""
        pid = fact.details.get("pid")
        if self.pid is not None and pid is not None and pid != self.pid:
            return
        if fact.name == "process_seen":
            self.gone_t = None
        elif self.gone_t is None:
            self.gone_t = fact.t

    def _unend(self) -> None:
        self.ended, self.exception, self.signal = False, None, None
        self.raised_t = self.signal_t = None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _exception(details: Mapping[str, Any]) -> str:
    kind, message = details.get("type"), details.get("message")
    said = ": ".join(str(part) for part in (kind, message) if part) or "exception"
    origin = details.get("origin")
    return f"{said} (from {origin})" if origin else said
