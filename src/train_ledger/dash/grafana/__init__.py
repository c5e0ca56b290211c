"""Which figures does a person look at, and how are they drawn?

One table of panels, in the four rows of the seed article's chapter 8, from which both the dashboard for
Grafana and the page of the documentation are made. The tests ask a real Prometheus every query.
"""

from __future__ import annotations

from train_ledger.dash.grafana.dashboard import DashboardError, dashboard_json
from train_ledger.dash.grafana.markdown import panels_md
from train_ledger.dash.grafana.panel import Annotation, Line, Mark, Panel, Row
from train_ledger.dash.grafana.tables import ANNOTATIONS, ROWS, VARIABLES, queries

__all__ = [
    "ANNOTATIONS",
    "ROWS",
    "VARIABLES",
    "Annotation",
    "DashboardError",
    "Line",
    "Mark",
    "Panel",
    "Row",
    "dashboard_json",
    "panels_md",
    "queries",
]
