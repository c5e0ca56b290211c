"""How is one panel drawn by Grafana?"""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_uppercase
from typing import Any

from grafana_foundation_sdk.builders import common as built
from grafana_foundation_sdk.builders import dashboard as made
from grafana_foundation_sdk.builders import heatmap, statetimeline, table, timeseries
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from train_ledger.config import Alerts
from train_ledger.dash.grafana.panel import Kind, Line, Panel
from train_ledger.dash.grafana.tables import anchor_of, threshold
from train_ledger.dash.promql import expression

__all__ = ["drawn"]

_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT = 8


def drawn(panel: Panel, number: int, alerts: Alerts, runbook: str) -> Any:
    """The builder of a panel; `number` is its id in the dashboard."""
    board = _KINDS[panel.kind](panel)
    board.id(number).title(panel.title).description(expression(panel.why, alerts)).datasource(_SOURCE)
    board.unit(panel.unit).thresholds(_thresholds(panel, alerts)).span(panel.width).height(_HEIGHT)
    board.links([_link(alert, runbook) for alert in panel.alerts])
    for name, line in zip(ascii_uppercase, panel.lines, strict=False):
        board.with_target(_query(panel, line, name, alerts))
        if changes := _changes(panel, line):
            board.override_by_query(name, changes)
    return board


def _query(panel: Panel, line: Line, name: str, alerts: Alerts) -> Dataquery:
    query = (
        Dataquery()
        .expr(expression(line.promql, alerts))
        .legend_format(expression(line.legend, alerts))
        .ref_id(name)
        .datasource(_SOURCE)
    )
    if panel.kind == "table":
        return query.instant().format(PromQueryFormat.TABLE)
    return query.range().format(PromQueryFormat.TIME_SERIES)


def _changes(panel: Panel, line: Line) -> list[DynamicConfigValue]:
    """How one query is drawn otherwise than the panel's others."""
    wanted = {
        "custom.axisPlacement": "right" if line.right else "",
        "custom.drawStyle": "line" if line.right and panel.kind == "bars" else "",
        "custom.fillBelowTo": line.shade_to,
        "unit": line.unit,
    }
    return [DynamicConfigValue(id_val=name, value=value) for name, value in wanted.items() if value]


def _thresholds(panel: Panel, alerts: Alerts) -> made.ThresholdsConfig:
    rising = bool(panel.marks) and panel.marks[-1].colour == "green"
    steps = [Threshold(value=None, color="red" if rising else "green")]
    steps += [Threshold(value=threshold(mark, alerts), color=mark.colour) for mark in panel.marks]
    return made.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _link(alert: str, runbook: str) -> made.DashboardLink:
    link = made.DashboardLink(f"Runbook: {alert}").type(DashboardLinkType.LINK)
    return link.url(f"{runbook}#{anchor_of(alert)}").target_blank(True)


# -- the kinds


def _lines(panel: Panel) -> Any:
    style = common.GraphTresholdsStyleMode.DASHED if panel.marks else common.GraphTresholdsStyleMode.OFF
    kind = common.ScaleDistribution.LOG if panel.log else common.ScaleDistribution.LINEAR
    scale = built.ScaleDistributionConfig().type(kind)
    return (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(8)
        .span_nulls(False)
        .show_points(common.VisibilityMode.NEVER)
        .thresholds_style(built.GraphThresholdsStyleConfig().mode(style))
        .scale_distribution(scale.log(10) if panel.log else scale)
        .legend(_legend())
        .tooltip(_tooltip())
    )


def _bars(panel: Panel) -> Any:
    return _lines(panel).draw_style(common.GraphDrawStyle.BARS).fill_opacity(60)


def _heat(panel: Panel) -> Any:
    colours = (
        heatmap.HeatmapColorOptions()
        .mode(HeatmapColorMode.SCHEME)
        .scheme("RdYlGn")
        .reverse(True)
        .steps(64)
        .fill("dark-orange")
        .exponent(0.5)
    )
    if panel.scale:
        colours.min(panel.scale[0]).max(panel.scale[1])
    return (
        heatmap.Panel()
        .calculate(False)
        .color(colours)
        .cell_gap(1)
        .cell_values(heatmap.CellValues().unit(panel.unit))
        .y_axis(heatmap.YAxisConfig().axis_label("rank").reverse(True))
        .show_legend()
    )


def _table(panel: Panel) -> Any:
    names = [f"Value #{name}" for name in ascii_uppercase] if len(panel.lines) > 1 else ["Value"]
    columns = {name: line.legend for name, line in zip(names, panel.lines, strict=False)}
    board = table.Panel().color_scheme(made.FieldColor().mode(FieldColorModeId.THRESHOLDS))
    board.transformations(
        [
            DataTransformerConfig(id_val="merge", options={}),
            DataTransformerConfig(
                id_val="organize", options={"excludeByName": {"Time": True}, "renameByName": columns}
            ),
        ]
    )
    for column in columns.values():
        shown = DynamicConfigValue(
            id_val="custom.cellOptions", value={"type": "color-background", "mode": "basic"}
        )
        board.override_by_name(column, [shown])
    return board


def _states(panel: Panel) -> Any:
    words = {
        str(value): ValueMappingResult(text=word, color=colour, index=index)
        for index, (value, word, colour) in enumerate(panel.values)
    }
    return (
        statetimeline.Panel()
        .show_value(common.VisibilityMode.NEVER)
        .merge_values(True)
        .row_height(0.8)
        .mappings([ValueMap(options=words)])
        .color_scheme(made.FieldColor().mode(FieldColorModeId.THRESHOLDS))
        .legend(built.VizLegendOptions().show_legend(False))
    )


def _legend() -> built.VizLegendOptions:
    return (
        built.VizLegendOptions()
        .show_legend(True)
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
    )


def _tooltip() -> built.VizTooltipOptions:
    return built.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)


_KINDS: dict[Kind, Callable[[Panel], Any]] = {
    "lines": _lines,
    "bars": _bars,
    "heat": _heat,
    "table": _table,
    "states": _states,
}
