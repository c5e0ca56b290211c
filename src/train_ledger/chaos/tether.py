"""How does what a drill started end with the drill, even where that is killed?

    python tether.py PARENT COMMAND…

becomes the command, which the kernel ends with SIGTERM once the process PARENT is gone (Linux alone).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

__all__ = ["become"]

_PR_SET_PDEATHSIG = 1


def become(parent: int, command: list[str]) -> None:
    """Turn this process into the command; returns only where the parent is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() == parent:
        os.execvp(command[0], command)  # noqa: S606  # a list of words, and no shell is wanted


if __name__ == "__main__":
    become(int(sys.argv[1]), sys.argv[2:])
