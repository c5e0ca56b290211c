"""Is there something to read in this pipe?"""

from __future__ import annotations

import select
from typing import IO

__all__ = ["is_ready"]


def is_ready(file: IO[bytes], timeout_s: float | None) -> bool:
    """Whether it can be read from without waiting, after at most that long; None: after as long as it takes.

    By poll: select takes no descriptor beyond 1023, and a keeper of a thousand ranks has more open.
    """
    waiting = select.poll()
    waiting.register(file, select.POLLIN)
    return bool(waiting.poll(None if timeout_s is None else 1000 * timeout_s))
