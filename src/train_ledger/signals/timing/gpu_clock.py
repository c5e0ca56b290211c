"""How long did the GPU work on a phase, found out without ever waiting for it?

Two CUDA events around the phase on the current stream, read back when the GPU has passed them: at the next
step or, where it is still busy, at a later one. `query` is all that is asked; nothing here synchronises. A
CUDA error that surfaces in one of our calls belongs to the training: the clock stops, the training meets the
error itself.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from typing import Any

__all__ = ["GpuClock"]

_STEPS_KEPT = 8
_PAIRS_A_STEP = 256
_LOOK_EVERY_S = 0.5
"""Where there is no CUDA, it may come later; to look for it at every phase would cost a step its share."""


class GpuClock:
    """Pairs of CUDA events by step; used by the training thread alone."""

    def __init__(self) -> None:
        self._now: list[tuple[str, Any, Any]] = []
        self._earlier: deque[list[tuple[str, Any, Any]]] = deque(maxlen=_STEPS_KEPT)
        self._free: list[Any] = []
        self._off = False
        self._look_again = 0.0

    def mark(self) -> Any:
        """An event recorded now; None where there is no CUDA to ask, or a graph is being captured."""
        now = time.monotonic()
        if self._off or now < self._look_again or len(self._now) >= _PAIRS_A_STEP:
            return None
        cuda = _initialised_cuda()
        if cuda is None:
            self._look_again = now + _LOOK_EVERY_S
            return None
        try:
            if cuda.is_current_stream_capturing():
                return None
            event = self._free.pop() if self._free else cuda.Event(enable_timing=True)
            event.record()
        except RuntimeError:
            self._off = True
            return None
        return event

    def pair(self, field: str, start: Any) -> None:
        """The work since `start` was for `field`."""
        end = self.mark()
        if end is not None:
            self._now.append((field, start, end))

    def take(self) -> dict[str, float]:
        """Seconds by field of the oldest earlier step that the GPU has finished; {} where there is none."""
        if self._now:
            self._earlier.append(self._now)
        finished, self._now = (self._earlier[0] if len(self._earlier) > bool(self._now) else None), []
        if finished is None or self._off:
            return {}
        try:
            if not all(end.query() for _, _, end in finished):
                return {}
            spent = _sums(finished)
        except RuntimeError:
            self._off = True
            return {}
        self._earlier.popleft()
        self._free += (event for _, start, end in finished for event in (start, end))
        return spent


def _sums(pairs: list[tuple[str, Any, Any]]) -> dict[str, float]:
    spent: dict[str, float] = {}
    for field, start, end in pairs:
        spent[field] = spent.get(field, 0.0) + start.elapsed_time(end) / 1e3
    return spent


def _initialised_cuda() -> Any:
    """torch.cuda where it is initialised and this is the thread whose current stream is meant."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return cuda if threading.current_thread() is threading.main_thread() else None
