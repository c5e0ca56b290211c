"""What happened, when, what did it cost, and where would the next time be shorter?"""

from __future__ import annotations

from train_ledger.ops.postmortem.draft import Postmortem, postmortem
from train_ledger.ops.postmortem.incident import latest_incident
from train_ledger.ops.postmortem.losses import losses
from train_ledger.ops.postmortem.shown import as_markdown, as_record, report_of_postmortem

__all__ = [
    "Postmortem",
    "as_markdown",
    "as_record",
    "latest_incident",
    "losses",
    "postmortem",
    "report_of_postmortem",
]
