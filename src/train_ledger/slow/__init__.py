"""Who drags, or what changed?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train_ledger.slow.answering import Asked, look
    from train_ledger.slow.comparing import NEWEST, Baseline
    from train_ledger.slow.history import FileHistory, History, TableHistory
    from train_ledger.slow.suspects import Beside, Cards

__all__ = [
    "NEWEST",
    "Asked",
    "Baseline",
    "Beside",
    "Cards",
    "FileHistory",
    "History",
    "TableHistory",
    "look",
]

_HOME = {
    "Asked": "answering",
    "Baseline": "comparing",
    "Beside": "suspects",
    "Cards": "suspects",
    "FileHistory": "history",
    "History": "history",
    "NEWEST": "comparing",
    "TableHistory": "history",
    "look": "answering",
}


def __getattr__(name: str) -> Any:
    """Each name from its module when it is asked for: who only reads a trace must start at once."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
