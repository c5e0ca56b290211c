"""The how-many-eth start of this run is this?

The launcher counts its own restarts, but starts from nought in a new scheduler job; the rank's own file
remembers, or the one that it has become by rotation. So the higher of the two.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from train_ledger.signals.harmless.regular import open_regular
from train_ledger.signals.writing.rotation import rotated

__all__ = ["next_attempt"]

_TAIL_BYTES = 1 << 16
_FILES_ASKED = 3
_ATTEMPT = re.compile(rb'"attempt":\s*(\d{1,9})')


def next_attempt(own_file: Path, environ: Mapping[str, str] = os.environ) -> int:
    """The attempt that begins now, 0 for the first; a file that cannot be read counts as none."""
    counted = environ.get("TORCHELASTIC_RESTART_COUNT", "")
    return max(int(counted) if counted.isdecimal() else 0, _last_attempt(own_file) + 1)


def _last_attempt(own_file: Path) -> int:
    """By the newest file that has a line; -1 where there is none."""
    found = (_last_in(rotated(own_file, age)) for age in range(_FILES_ASKED))
    return next((attempt for attempt in found if attempt >= 0), -1)


def _last_in(own_file: Path) -> int:
    try:
        with os.fdopen(open_regular(own_file, os.O_RDONLY), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except OSError:
        return -1
    found = [int(number) for number in _ATTEMPT.findall(tail)]
    return max(found, default=0 if size else -1)
