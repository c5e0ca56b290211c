"""How do the panels become a dashboard that Grafana loads?

Built with grafana-foundation-sdk in the schema of Grafana 10.1, which every later Grafana reads. The SDK is
looked up when a dashboard is made: nobody else needs it.
"""

from __future__ import annotations

import json
from typing import Any

from train_ledger.config import Alerts
from train_ledger.dash.grafana.panel import Annotation
from train_ledger.dash.grafana.tables import ANNOTATIONS, ROWS, VARIABLES

__all__ = ["DashboardError", "dashboard_json"]

_UID = "train-ledger"


class DashboardError(Exception):
    """The dashboard cannot be made; the text says what to install."""


def dashboard_json(alerts: Alerts, *, runbook: str = "runbook.md") -> str:
    """The dashboard as JSON, for Grafana's import or its provisioning.

    `runbook` is the URL of the runbook, to which the panels link. Raises DashboardError where
    grafana-foundation-sdk is not installed.
    """
    try:
        from grafana_foundation_sdk.cog.encoder import JSONEncoder

        from train_ledger.dash.grafana.drawing import drawn
    except ImportError as error:
        raise DashboardError(
            "the dashboard is built with grafana-foundation-sdk, which is not installed: "
            "pip install 'train-ledger[deploy]'"
        ) from error
    board = _board()
    first_row: list[int] = []
    number = 0
    for place, row in enumerate(ROWS):
        number += 1
        board.with_row(_row(row.title, number))
        for panel in row.panels:
            number += 1
            board.with_panel(drawn(panel, number, alerts, runbook))
            first_row += [number] if place == 0 else []
    content = json.loads(json.dumps(board.build(), cls=JSONEncoder))
    content["annotations"] = {"list": [_annotation(each, first_row) for each in ANNOTATIONS]}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _board() -> Any:
    from grafana_foundation_sdk.builders import dashboard as made
    from grafana_foundation_sdk.models.dashboard import DashboardCursorSync

    board = (
        made.Dashboard("Training run")
        .uid(_UID)
        .description("One training run: the task, its processes, their hardware, and what happened.")
        .tags(["train-ledger"])
        .editable()
        .refresh("30s")  # a hundred queries over hours: more often would weigh on Prometheus
        .time("now-3h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(made.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    for name, (metric, label) in VARIABLES.items():
        board.with_variable(_variable(name, metric, label))
    return board


def _variable(name: str, metric: str, label: str) -> Any:
    from grafana_foundation_sdk.builders.dashboard import QueryVariable
    from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh, VariableSort

    query: dict[str, object] = {"query": f"label_values({metric}, {label})", "refId": f"variable-{name}"}
    return (
        QueryVariable(name)
        .label(name.capitalize())
        .datasource(DataSourceRef(type_val="prometheus", uid="${datasource}"))
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_DESC)
    )


def _row(title: str, number: int) -> Any:
    from grafana_foundation_sdk.builders.dashboard import Row

    return Row(title).id(number)


def _annotation(annotation: Annotation, panels: list[int]) -> dict[str, object]:
    """As Grafana's Prometheus data source takes it; the SDK knows only what all data sources have."""
    return {
        "name": annotation.title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "enable": True,
        "iconColor": annotation.colour,
        "filter": {"exclude": False, "ids": panels},
        "expr": annotation.promql,
        "step": "15s",
        "titleFormat": annotation.says,
        "textFormat": "{{run}}",
        "tagKeys": ",".join(annotation.labels),
        "useValueForTime": annotation.value_is_time,
    }
