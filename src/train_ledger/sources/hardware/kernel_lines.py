"""What does the kernel of this host write now, wherever it can be read?

/dev/kmsg, else the journal, else nothing, and then it is said what to do. Only lines that matter are told,
and a burst of equal ones as a few and their number.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from train_ledger.sources.hardware.journal import Journal
from train_ledger.sources.hardware.kernel_bursts import Bursts
from train_ledger.sources.hardware.kernel_file import KernelFile
from train_ledger.sources.hardware.kernel_message import KernelMessage
from train_ledger.sources.hardware.kmsg import Kmsg

__all__ = ["KernelLines"]

_SURE_POLLS = 3
_WHAT_TO_DO = (
    "run with CAP_SYSLOG, as a member of the group systemd-journal or adm, or name a file by kernel_log in "
    "[hardware]"
)


class _Source(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def trouble(self) -> str | None: ...
    def poll(self) -> list[KernelMessage]: ...
    def place(self) -> Mapping[str, Any]: ...
    def close(self) -> None: ...


class KernelLines:
    """The kernel's lines as they come, each as `journalctl -k -o short-unix` prints it.

    `how` is "auto", "none" or the path of a log, as in [hardware] kernel_log; lines of before `since_t` (unix
    seconds) are left out, and those before `place`, where an earlier reader stopped. `not_observed` says why
    there are none at all, None where the log is read.
    """

    def __init__(
        self, how: str, host: str, *, since_t: float, place: Mapping[str, Any] | None = None
    ) -> None:
        self._host = host
        self._bursts = Bursts()
        self._told: str | None = None
        self._polls = 0
        self.not_observed: str | None = None
        self._source = self._opened(how, since_t, place)

    def _opened(self, how: str, since_t: float, place: Mapping[str, Any] | None) -> _Source | None:
        if how == "none":
            self.not_observed = "kernel log: switched off by kernel_log in [hardware]"
            return None
        if how != "auto":
            return KernelFile(Path(how), since_t=since_t, place=place)
        try:
            return Kmsg.opened(since_t=since_t, place=place)
        except OSError as error:
            why = f"/dev/kmsg: {error.strerror or error}"
        try:
            return Journal(since_t=since_t, place=place)
        except OSError as error:
            self.not_observed = f"kernel log: {why}; journalctl: {error.strerror or error}; {_WHAT_TO_DO}"
            return None

    @property
    def by(self) -> str:
        """Where the lines come from; "" where there are none."""
        return self._source.name if self._source else ""

    def poll(self) -> list[str]:
        """The lines since the last look."""
        if self._source is None:
            return []
        self._polls += 1
        try:
            messages = self._source.poll()
        except OSError as error:
            self.not_observed = f"kernel log: {self._source.name}: {error.strerror or error}"
            self.close()
            return []
        return [it.line(self._host) for it in self._bursts.pass_on(messages, time.monotonic())]

    @property
    def is_read(self) -> bool:
        """Whether it is sure that the kernel's lines would be told; journalctl says late that it may not."""
        if self._source is None or isinstance(self._source, Kmsg):
            return self._source is not None
        return self._polls > _SURE_POLLS and self._source.trouble is None

    def rest(self) -> list[str]:
        """What a burst left to be told, when nobody will look any more."""
        return [it.line(self._host) for it in self._bursts.rest()]

    def trouble(self) -> str | None:
        """What a person should know of the log and was not told yet."""
        trouble = self._source.trouble if self._source else None
        if trouble is None or trouble == self._told:
            return None
        self._told = trouble
        return f"kernel log: {trouble}" + (f"; {_WHAT_TO_DO}" if self.by == Journal.name else "")

    def place(self) -> Mapping[str, Any] | None:
        """Where this reader stands, for one that comes after it."""
        return self._source.place() if self._source else None

    def close(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.close()
