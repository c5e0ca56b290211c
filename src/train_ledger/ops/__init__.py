"""What does a person do now?"""

from __future__ import annotations

from train_ledger.ops.diagnose import diagnose, examine
from train_ledger.ops.observing import observe, read_state
from train_ledger.ops.postmortem import latest_incident, postmortem

__all__ = ["diagnose", "examine", "latest_incident", "observe", "postmortem", "read_state"]
