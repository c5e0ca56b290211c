"""What was on record lately, what did it cost, and what can a person do about it by day?"""

from __future__ import annotations

from train_ledger.ops.weekly.firings import Firing, firings_of
from train_ledger.ops.weekly.matters import Matter, matters_of
from train_ledger.ops.weekly.shown import report_of_weekly
from train_ledger.ops.weekly.weekly import RunWeek, Weekly, weekly

__all__ = [
    "Firing",
    "Matter",
    "RunWeek",
    "Weekly",
    "firings_of",
    "matters_of",
    "report_of_weekly",
    "weekly",
]
