"""What did the run do with its time?"""

from __future__ import annotations

from train_ledger.ledger.accounts.accounts import Price, accounts_of
from train_ledger.ledger.accounts.history import Happened, History
from train_ledger.ledger.accounts.records import (
    CATEGORIES,
    PARTS,
    Accounts,
    Checkpointing,
    Interruption,
    Recovery,
    Span,
)
from train_ledger.ledger.accounts.signs import Sign, signs_of

__all__ = [
    "CATEGORIES",
    "PARTS",
    "Accounts",
    "Checkpointing",
    "Happened",
    "History",
    "Interruption",
    "Price",
    "Recovery",
    "Sign",
    "Span",
    "accounts_of",
    "signs_of",
]
