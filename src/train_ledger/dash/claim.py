"""Whose is a message that is being sent, and does that process still live?"""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

__all__ = ["claimant", "is_over"]

_ELSEWHERE_S = 900.0
"""A claim by another host cannot be asked whether it lives; a sender never takes as long as this."""

_FRESH_S = 10.0
"""Between creating a claim and writing into it a sender needs microseconds; then it must say whose it is."""


def claimant() -> dict[str, Any]:
    """Who this process is, so that it can be told from a later one with the same number."""
    return {
        "pid": os.getpid(),
        "started": _started(os.getpid()),
        "host": socket.gethostname(),
        "boot": _boot(),
        "t": time.time(),
    }


def _started(pid: int) -> str | None:
    """The start time of a process in ticks since boot, None where there is none (a zombie counts as none)."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] == "Z" else after_name[19]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def is_over(claim: Path) -> bool:
    """Whether the process that claimed is gone."""
    try:
        text, age_s = claim.read_text(), time.time() - claim.stat().st_mtime
    except OSError:
        return False
    try:
        who = json.loads(text)
        pid, started, host, boot = int(who["pid"]), who["started"], who["host"], who["boot"]
    except (ValueError, KeyError, TypeError):
        return age_s > _FRESH_S
    if host != socket.gethostname():
        return age_s > _ELSEWHERE_S
    return bool(boot != _boot() or _started(pid) != started)
