"""What did the run do with its time?"""

from __future__ import annotations

from train_ledger.ledger.accounts.records import (
    CATEGORIES,
    PARTS,
    Accounts,
    Checkpointing,
    Interruption,
    Recovery,
    Span,
)

__all__ = ["CATEGORIES", "PARTS", "Accounts", "Checkpointing", "Interruption", "Recovery", "Span"]
