"""Until something that goes on beside a test has come about."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["wait_until"]


def wait_until(holds: Callable[[], object], timeout_s: float = 30.0, what: str = "") -> None:
    """Fails where it does not hold within a time that a loaded machine does not need either."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain {what}".rstrip()
        time.sleep(0.02)
