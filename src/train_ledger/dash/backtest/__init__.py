"""When would the alerts have told of what happened in recorded runs, and when for nothing?"""

from __future__ import annotations

from train_ledger.dash.backtest.history import PastAlert
from train_ledger.dash.backtest.incidents import IncidentsError, PastIncident, incidents_in
from train_ledger.dash.backtest.many import NotJudged, backtest_all
from train_ledger.dash.backtest.prometheus import alerts_by_prometheus
from train_ledger.dash.backtest.promtool import PromtoolError, promtool
from train_ledger.dash.backtest.recording import Recording, record
from train_ledger.dash.backtest.replay import Known, Replay, evaluations
from train_ledger.dash.backtest.report import answer, report
from train_ledger.dash.backtest.trial import Backtest, Engine, Span, backtest

__all__ = [
    "Backtest",
    "Engine",
    "IncidentsError",
    "Known",
    "NotJudged",
    "PastAlert",
    "PastIncident",
    "PromtoolError",
    "Recording",
    "Replay",
    "Span",
    "alerts_by_prometheus",
    "answer",
    "backtest",
    "backtest_all",
    "evaluations",
    "incidents_in",
    "promtool",
    "record",
    "report",
]
