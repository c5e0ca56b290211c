"""Whose own work takes longer than that of its peers?"""

from __future__ import annotations

from train_ledger.slow.peers.judging import who
from train_ledger.slow.peers.verdict import Excess, Kind, Phase, Waits, Who

__all__ = ["Excess", "Kind", "Phase", "Waits", "Who", "who"]
