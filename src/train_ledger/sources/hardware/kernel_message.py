"""Which lines of a kernel's log tell of GPUs, links, memory or killed processes, and how are they written?"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["KernelMessage", "matters"]

_MATTERS = re.compile(
    r"NVRM|\bS?Xid\b|nvidia-(?:nvswitch|nvlink|modeset)|nv(?:link|switch)|NVLink"
    r"|Out of memory|out of memory|oom-kill|oom_reaper|Killed process"
    r"|mlx[45]_?|\bbnxt_(?:en|re)|\bAER:|PCIe Bus Error|link is (?:down|not ready)|Link down"
    r"|\bmce:|\bMCE\b|[Mm]achine [Cc]heck|\[Hardware Error\]|\bEDAC\b"
)
_LONGEST = 2000
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f]+")


class KernelMessage(NamedTuple):
    """One message: when it was written (unix seconds; None where the log does not say) and its text."""

    t: float | None
    text: str

    def line(self, host: str) -> str:
        """As `journalctl -k -o short-unix` prints it; as it stands where it tells no time.

        >>> KernelMessage(1700000000.5, "NVRM: Xid (PCI:0000:3b:00): 79, gone").line("n7")
        '1700000000.500000 n7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, gone'
        """
        text = _INVISIBLE.sub(" ", self.text)[:_LONGEST]
        return text if self.t is None else f"{self.t:.6f} {host} kernel: {text}"


def matters(text: str) -> bool:
    """Whether a message is kept: of the NVIDIA driver, network cards, PCIe, memory errors, killed processes.

    >>> matters("NVRM: Xid (PCI:0000:3b:00): 31, pid=7"), matters("usb 1-1: new high-speed USB device")
    (True, False)
    """
    return _MATTERS.search(text) is not None
