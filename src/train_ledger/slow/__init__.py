"""Who drags, or what changed?"""

from __future__ import annotations

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
