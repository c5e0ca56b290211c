"""How much memory and processor does this process use, and how long did its garbage collector hold it up?

The host's figures are sampled by a background thread; the training thread reads an attribute.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time

__all__ = ["GarbageClock", "HostSample"]

_STATM = "/proc/self/statm"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class HostSample:
    """`rss_bytes` and `cpu_percent` (of one core, since the last sample); what cannot be read is left out."""

    def __init__(self) -> None:
        self.fields: dict[str, float] = {}
        self._last = (time.monotonic(), _cpu_s())
        self._statm: int | None = None
        with contextlib.suppress(OSError):  # not Linux, or /proc is not mounted
            self._statm = os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)  # kept open: reading it anew is cheap

    def close(self) -> None:
        if self._statm is not None:
            os.close(self._statm)
            self._statm = None

    def take(self) -> None:
        now, cpu_s = time.monotonic(), _cpu_s()
        then, cpu_then_s = self._last
        fields: dict[str, float] = {}
        if now > then:
            fields["cpu_percent"] = round(100 * (cpu_s - cpu_then_s) / (now - then), 1)
        if self._statm is not None:
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields["rss_bytes"] = int(os.pread(self._statm, 128, 0).split()[1]) * _PAGE_BYTES
        self._last = now, cpu_s
        self.fields = fields


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system


class GarbageClock:
    """Seconds that the collector took, counted by gc.callbacks."""

    def __init__(self) -> None:
        self._spent_s = 0.0
        self._began = 0.0
        gc.callbacks.append(self._on_collection)

    def take(self) -> float:
        """Seconds since the last call."""
        spent_s, self._spent_s = self._spent_s, 0.0
        return spent_s

    def close(self) -> None:
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, info: object) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self._spent_s += time.perf_counter() - self._began
