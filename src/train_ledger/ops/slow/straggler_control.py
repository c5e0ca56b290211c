"""Does the log show a port by which Megatron's own StragglerDetector is switched on?

Megatron prints its arguments when it starts, `  straggler_ctrlr_port ........ 65535`; one request to that
port of rank 0's host toggles the detector (megatron/core/README_STRAGGLER.md), if --log-straggler was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["straggler_port"]

_HEAD_BYTES = 256 << 10
_MOST_FILES = 64
_PORT = re.compile(rb"\bstraggler_ctrlr_port \.{2,} ?(\d{1,5})\b")
_LOGS_STRAGGLERS = re.compile(rb"\blog_straggler \.{2,} ?True\b")


def straggler_port(logs: Iterable[Path]) -> int | None:
    """The port, where a log shows it among its first lines; a file that cannot be read shows none."""
    for number, path in enumerate(logs):
        if number >= _MOST_FILES:
            return None
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES)
        except OSError:
            continue
        port = _PORT.search(head)
        if port and _LOGS_STRAGGLERS.search(head) and 0 < int(port[1]) < 1 << 16:
            return int(port[1])
    return None
