"""Is torch there yet, and has it begun to use CUDA?

It is looked up where it is used and never imported by us.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["is_cuda_initialised", "is_imported"]


def is_imported() -> bool:
    """Whether torch is there as a whole: while it is imported some of its parts are, and others are not."""
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    return "torch.distributed" in sys.modules and not getattr(spec, "_initializing", False)


def is_cuda_initialised() -> bool:
    """Whether a program has begun to use it; asking begins nothing."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())
