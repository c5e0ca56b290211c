"""What does the kernel of this host write, by /dev/kmsg?

A read gives one record: "priority,number,microseconds since boot,flags;message" (Documentation/ABI/testing/
dev-kmsg). What other programs wrote there is no word of the kernel and is left out.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from train_ledger.sources.hardware.kernel_message import KernelMessage, matters

__all__ = ["Kmsg"]

_PATH = Path("/dev/kmsg")
_DEVICE = os.makedev(1, 11)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_RECORD_BYTES = 8192
_MOST_RECORDS = 20_000
_KERNEL = 8
"""Priorities below are of the kernel itself; each of syslog's other facilities has eight of its own."""

_RECORD = re.compile(rb"(\d{1,6}),(\d{1,20}),(\d{1,20})(?:,[^;]{0,200})?;([^\n]*)")
_DRIFT_S = 2.0


class Kmsg:
    """The kernel's records from a descriptor that is not waited for; owns it: call `close`.

    `place` is where an earlier reader stopped; else records from `since_t` (unix seconds) on are told. The
    kernel's clock runs on its own from boot: what came since the last look is given a time between
    the two looks, and `trouble` says by how much the clocks differ. `overrun` counts how often records were
    overwritten before they could be read.
    """

    name: ClassVar[str] = "/dev/kmsg"

    def __init__(
        self,
        fd: int,
        *,
        since_t: float,
        place: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.time,
        read: Callable[[int, int], bytes] = os.read,
    ) -> None:
        self._fd = fd
        self._read = read
        self._clock = clock
        self._boot_id = _boot_id()
        self._since_t = since_t
        self._number = _number_in(place, self._boot_id)
        self._goes_on = self._number >= 0
        self._looked_t: float | None = None
        self._drift_told = False
        self.overrun = 0
        self.trouble: str | None = None

    @classmethod
    def opened(cls, *, since_t: float, place: Mapping[str, Any] | None = None, path: Path = _PATH) -> Kmsg:
        """The records of this host; raises OSError where they cannot be read."""
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        if os.fstat(fd).st_rdev != _DEVICE:  # some containers put a console there
            os.close(fd)
            raise OSError(errno.ENODEV, "is not the kernel's log", str(path))
        return cls(fd, since_t=since_t, place=place)

    def poll(self) -> list[KernelMessage]:
        """What matters of the records since the last look; raises OSError where the device is gone."""
        now = self._clock()
        boot_t = now - time.monotonic()
        messages: list[KernelMessage] = []
        for _ in range(_MOST_RECORDS):
            record = self._next()
            if record is None:
                self._looked_t = now
                break
            message = self._message(record, boot_t, now)
            if message is not None:
                messages.append(message)
        return messages

    def place(self) -> Mapping[str, Any]:
        """Where this reader stands, for one that comes after it."""
        return {"by": self.name, "boot_id": self._boot_id, "number": self._number}

    def close(self) -> None:
        os.close(self._fd)

    def _next(self) -> bytes | None:
        while True:
            try:
                return self._read(self._fd, _RECORD_BYTES) or None
            except BlockingIOError:
                return None
            except BrokenPipeError:  # the next read goes on with the oldest record that there still is
                self.overrun += 1
                self.trouble = f"records were overwritten before they could be read ({self.overrun} times)"

    def _message(self, record: bytes, boot_t: float, now: float) -> KernelMessage | None:
        match = _RECORD.match(record)
        if match is None or int(match[1]) >= _KERNEL:
            return None
        number = int(match[2])
        if number <= self._number:
            return None
        self._number = number
        text = match[4].decode("utf-8", "replace")
        if not matters(text):
            return None
        t = self._corrected(boot_t + int(match[3]) / 1e6, now)
        return KernelMessage(t, text) if self._goes_on or t >= self._since_t else None

    def _corrected(self, t: float, now: float) -> float:
        if self._looked_t is None:
            return min(t, now)
        corrected = min(max(t, self._looked_t), now)
        if abs(t - corrected) > _DRIFT_S and not self._drift_told:
            self._drift_told = True
            way = "behind" if t < corrected else "ahead of"
            self.trouble = (
                f"the kernel's clock is {abs(t - corrected):.0f} s {way} the host's; times are corrected"
            )
        return corrected


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _number_in(place: Mapping[str, Any] | None, boot_id: str) -> int:
    """The last record that an earlier reader saw since this boot, or -1."""
    if not place or place.get("by") != Kmsg.name or not boot_id or place.get("boot_id") != boot_id:
        return -1
    number = place.get("number")
    return number if isinstance(number, int) and number >= 0 else -1
