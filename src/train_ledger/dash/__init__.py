"""What do people see, and what wakes them?

The page and the exporter are asked for by their own names (`train_ledger.dash.page`,
`train_ledger.dash.exporter`), so that a sender of messages does not load web servers.
"""

from __future__ import annotations

from train_ledger.dash.incident import Action, Incident, Incidents, Member
from train_ledger.dash.judge import Alert, Judge, Transition
from train_ledger.dash.message import Notification, Outcome, Target, redacted
from train_ledger.dash.outbox import Outbox
from train_ledger.dash.promql import alerts_yml
from train_ledger.dash.rule import Firing, Inhibition, Rule
from train_ledger.dash.rules import INHIBITIONS, RULES

__all__ = [
    "INHIBITIONS",
    "RULES",
    "Action",
    "Alert",
    "Firing",
    "Incident",
    "Incidents",
    "Inhibition",
    "Judge",
    "Member",
    "Notification",
    "Outbox",
    "Outcome",
    "Rule",
    "Target",
    "Transition",
    "alerts_yml",
    "redacted",
]
