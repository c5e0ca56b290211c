"""What state is the run in, and where did its time and money go?"""

from __future__ import annotations

from train_ledger.ledger.attempts import restarts
from train_ledger.ledger.clock import RankClock
from train_ledger.ledger.cost import gpu_price_per_hour, has_gpus, impact
from train_ledger.ledger.fold import Fold
from train_ledger.ledger.journal import Journal, JournalError
from train_ledger.ledger.lock import KeeperHeld, KeeperLock
from train_ledger.ledger.memory import Memory, MemoryUnusableError, state_path
from train_ledger.ledger.past import Dated, dated, dated_of_hosts, known_at, known_with_hardware
from train_ledger.ledger.state import STATES, Attempt, Checkpoints, FailedSave, RankState, RunState
from train_ledger.ledger.xids import XIDS, Xid, xid, xid_level

__all__ = [
    "STATES",
    "XIDS",
    "Attempt",
    "Checkpoints",
    "Dated",
    "FailedSave",
    "Fold",
    "Journal",
    "JournalError",
    "KeeperHeld",
    "KeeperLock",
    "Memory",
    "MemoryUnusableError",
    "RankClock",
    "RankState",
    "RunState",
    "Xid",
    "dated",
    "dated_of_hosts",
    "gpu_price_per_hour",
    "has_gpus",
    "impact",
    "known_at",
    "known_with_hardware",
    "restarts",
    "state_path",
    "xid",
    "xid_level",
]
