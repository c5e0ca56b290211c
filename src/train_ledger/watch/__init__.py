"""What happens while a run is followed? Follow, fold, judge, first answers, notify, journal."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train_ledger.watch.keeper import Keeper
    from train_ledger.watch.loop import watch

__all__ = ["Keeper", "watch"]

_HOME = {"Keeper": "keeper", "watch": "loop"}


def __getattr__(name: str) -> Any:
    """Each name from its module when it is asked for: who only looks on needs no keeper."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
