"""Is a run slow, by whom or by what, what does that cost, and what does a person type next?"""

from train_ledger.ops.slow.asked import look_at
from train_ledger.ops.slow.curves import picture_at
from train_ledger.ops.slow.wanted import Wanted, WantedError

__all__ = ["Wanted", "WantedError", "look_at", "picture_at"]
