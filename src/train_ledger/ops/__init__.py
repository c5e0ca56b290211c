"""What does a person do now?"""

from __future__ import annotations

from train_ledger.ops.diagnose import diagnose, observe, read_state
from train_ledger.ops.postmortem import latest_incident, postmortem

__all__ = ["diagnose", "latest_incident", "observe", "postmortem", "read_state"]
