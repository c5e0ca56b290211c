"""How does the CUDA caching allocator stand?

From torch.cuda.memory_stats() where CUDA is initialised. The call counts under the allocator's own lock and
asks the GPU nothing.
"""

from __future__ import annotations

import sys
import time
from typing import Any

__all__ = ["MemoryCounters"]

_KEYS = {
    "mem_allocated_peak": "allocated_bytes.all.peak",
    "mem_reserved_peak": "reserved_bytes.all.peak",
    "mem_active_peak": "active_bytes.all.peak",
    "mem_inactive_split": "inactive_split_bytes.all.current",
    "mem_requested": "requested_bytes.all.current",
    "num_alloc_retries": "num_alloc_retries",
    "num_ooms": "num_ooms",
    "num_device_alloc": "num_device_alloc",
    "num_device_free": "num_device_free",
}
_SHORTEST_S = 0.1


class MemoryCounters:
    """The memory fields of a line, ten times a second at most: the call costs a tenth of a millisecond.

    The peaks are those since the last line that held them: the allocator's peaks are reset after each reading
    unless `keep_peaks` is set, which leaves `torch.cuda.max_memory_allocated()` to the training and makes the
    fields peaks of the whole run.
    """

    def __init__(self, keep_peaks: bool = False) -> None:
        self._keep_peaks = keep_peaks
        self._next = 0.0

    def take(self) -> dict[str, float]:
        """{} where there is no CUDA, or the last reading is too young."""
        now = time.monotonic()
        if now < self._next:
            return {}
        self._next = now + _SHORTEST_S
        cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return {}
        try:
            stats = cuda.memory_stats()
            if not self._keep_peaks:
                cuda.reset_peak_memory_stats()
        except RuntimeError:  # an error of the training's own that surfaces here; it will meet it itself
            return {}
        return {field: stats[key] for field, key in _KEYS.items() if key in stats}
