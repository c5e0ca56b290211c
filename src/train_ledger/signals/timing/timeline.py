"""On which clock is a rank's own work told from its waiting, so that nobody waits for the answer?

By the wall where collectives block their caller, as gloo's do. By CUDA events on the stream that trains where
they do not: an event recorded before and one after, asked for by `query` when the GPU has passed them. A
stamp is what `now` gave; None where nothing can be said of this moment.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Protocol

__all__ = ["CudaTimeline", "Timeline", "WallTimeline", "timeline"]


class Timeline(Protocol):
    """A clock of stamps; `method` is its name in the line."""

    method: str
    pair_s: float
    """What two stamps cost the training thread, rather too much than too little; seconds."""

    def is_here(self) -> bool:
        """Whether this thread is one that trains; others have no stamps."""

    def now(self) -> Any:
        """A stamp, or None."""

    def passed(self, stamp: Any) -> bool:
        """Whether all that came before the stamp is done."""

    def between(self, start: Any, end: Any) -> float:
        """Seconds; of stamps that are passed."""


class WallTimeline:
    """The training thread's own time; other threads have no stamps."""

    method = "collective_wall"
    pair_s = 8e-6

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def is_here(self) -> bool:
        return threading.get_ident() == self._thread

    def now(self) -> float | None:
        return time.perf_counter() if threading.get_ident() == self._thread else None

    def passed(self, stamp: float) -> bool:
        return True

    def between(self, start: float, end: float) -> float:
        return end - start


class CudaTimeline:
    """Events on the stream that is current where this is made: the one that trains.

    Stamps are taken on the training thread and on the threads on which autograd runs its backward pass; on
    another stream, and while a graph is captured, there are none. `broken` is set by a CUDA error, which is
    the training's own to meet.
    """

    method = "cuda_events"
    pair_s = 2e-5

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda
        self._task = getattr(torch._C, "_current_graph_task_id", lambda: -1)
        self._thread = threading.get_ident()
        self._stream = torch.cuda.current_stream()
        self._free: list[Any] = []
        self.broken = False

    def is_here(self) -> bool:
        return threading.get_ident() == self._thread or bool(self._task() != -1)

    def now(self) -> Any:
        if self.broken or not self.is_here():
            return None
        try:
            if self._cuda.current_stream() != self._stream or self._cuda.is_current_stream_capturing():
                return None
            event = self._free.pop() if self._free else self._cuda.Event(enable_timing=True)
            event.record()
        except RuntimeError:
            self.broken = True
            return None
        return event

    def is_on(self, stream: Any) -> bool:
        """Whether that stream is the one that trains."""
        return bool(stream == self._stream)

    def passed(self, stamp: Any) -> bool:
        try:
            return bool(stamp.query())
        except RuntimeError:
            self.broken = True
            return False

    def between(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) / 1e3

    def give_back(self, stamps: list[Any]) -> None:
        """These stamps are not asked for any more: their events may be recorded anew."""
        self._free += (stamp for stamp in stamps if stamp is not None)


def timeline() -> Timeline | None:
    """The one for this thread: of CUDA's current stream, of the wall, or None where neither would be true.

    An accelerator other than CUDA works on while its host waits for nothing, so the wall says nothing there.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_initialized():
        try:
            return CudaTimeline(torch)
        except RuntimeError:  # a CUDA error of the training's own
            return None
    accelerator = getattr(torch, "accelerator", None)
    device = accelerator.current_accelerator() if accelerator is not None else None
    return WallTimeline() if device is None or device.type == "cuda" else None
