"""What happens while a run is followed? Follow, fold, judge, first answers, notify, journal."""

from __future__ import annotations

from train_ledger.watch.keeper import Keeper
from train_ledger.watch.loop import watch

__all__ = ["Keeper", "watch"]
