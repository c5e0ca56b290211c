"""Is a run slow, by whom or by what, what does that cost, and what does a person type next?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train_ledger.ops.slow.asked import look_at
    from train_ledger.ops.slow.curves import picture_at
    from train_ledger.ops.slow.wanted import Wanted, WantedError

__all__ = ["Wanted", "WantedError", "look_at", "picture_at"]

_HOME = {"Wanted": "wanted", "WantedError": "wanted", "look_at": "asked", "picture_at": "curves"}


def __getattr__(name: str) -> Any:
    """Each name from its module when it is asked for: who asks for no run's pace loads no tables of steps."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
