"""What does a person do now?"""

from __future__ import annotations

from train_ledger.ops.diagnose import diagnose, read_state
from train_ledger.ops.postmortem import postmortem

__all__ = ["diagnose", "postmortem", "read_state"]
