"""Which rows, variables and annotations are there, and what do they ask Prometheus?"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.config import Alerts
from train_ledger.dash.grafana.events import ANNOTATIONS, EVENTS
from train_ledger.dash.grafana.hardware import HARDWARE
from train_ledger.dash.grafana.panel import Mark
from train_ledger.dash.grafana.process import PROCESS
from train_ledger.dash.grafana.task import TASK
from train_ledger.dash.promql import expression
from train_ledger.dash.rules import RULES

__all__ = ["ANNOTATIONS", "ROWS", "VARIABLES", "anchor_of", "queries", "threshold"]

ROWS = (TASK, PROCESS, HARDWARE, EVENTS)

VARIABLES = {"run": ("train_run_state", "run")}
"""Name of a variable: the metric and the label whose values it offers."""

_ANCHORS = {rule.name: rule.runbook for rule in RULES}


def queries(alerts: Alerts) -> Iterator[tuple[str, str]]:
    """(what asks, PromQL) of every panel and annotation; `$run` still stands for the run."""
    for row in ROWS:
        for panel in row.panels:
            for line in panel.lines:
                yield f"{row.title} / {panel.title} / {line.legend}", expression(line.promql, alerts)
    for annotation in ANNOTATIONS:
        yield f"annotation {annotation.title}", expression(annotation.promql, alerts)


def threshold(mark: Mark, alerts: Alerts) -> float:
    """Where a mark is drawn with these thresholds."""
    return float(getattr(alerts, mark.at)) if isinstance(mark.at, str) else mark.at


def anchor_of(alert: str) -> str:
    """The anchor of an alert in the runbook."""
    return _ANCHORS.get(alert, alert.lower())
