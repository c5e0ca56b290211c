"""What does a day of a job look like, healthy or with one planted incident?

Days of simulated jobs as facts, told in the order in which a keeper would read them, with the truth beside
them: what should be alarmed, when at the earliest, and who is to be named. `bench/alert_days.py` holds the
rules against them.
"""

from __future__ import annotations

from train_ledger.chaos.days.day import Day, Told, Truth
from train_ledger.chaos.days.faulty import FAULTS, faulty_day
from train_ledger.chaos.days.files import write_day
from train_ledger.chaos.days.healthy import SHAPES, healthy_day
from train_ledger.chaos.days.judged import Judged, judge_day
from train_ledger.chaos.days.score import Score, score

__all__ = [
    "FAULTS",
    "SHAPES",
    "Day",
    "Judged",
    "Score",
    "Told",
    "Truth",
    "faulty_day",
    "healthy_day",
    "judge_day",
    "score",
    "write_day",
]
