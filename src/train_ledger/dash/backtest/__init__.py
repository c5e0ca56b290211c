"""When would the alerts have told of what happened in recorded runs, and when for nothing?"""

from __future__ import annotations

from train_ledger.dash.backtest.history import PastAlert
from train_ledger.dash.backtest.replay import Known, Replay, evaluations

__all__ = ["Known", "PastAlert", "Replay", "evaluations"]
