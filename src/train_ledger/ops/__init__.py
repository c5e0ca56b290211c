"""What does a person do now?"""

from __future__ import annotations

from train_ledger.ops.diagnose import diagnose, examine
from train_ledger.ops.observing import observe, read_state

__all__ = ["diagnose", "examine", "observe", "read_state"]
