"""What went wrong in a run, and which of it came first?"""

from __future__ import annotations

from train_ledger.ops.troubles.order import FirstCause, fallen_t, first_cause, gave_up_t
from train_ledger.ops.troubles.telling import troubles_told
from train_ledger.ops.troubles.told import Told
from train_ledger.ops.troubles.trouble import Trouble

__all__ = ["FirstCause", "Told", "Trouble", "fallen_t", "first_cause", "gave_up_t", "troubles_told"]
