"""How do the panels read in the documentation?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train_ledger.config import Alerts
from train_ledger.dash.grafana.panel import Line, Mark, Panel, of_gpus, of_ports
from train_ledger.dash.grafana.tables import ANNOTATIONS, ROWS, VARIABLES, threshold
from train_ledger.dash.promql import expression

__all__ = ["panels_md"]

_HEAD = """# The panels

<!-- Written by tools/panels_page.py from src/train_ledger/dash/grafana; change it there. -->

The dashboard that `train-ledger deploy` writes, in words: what each panel asks Prometheus, in which unit, and
what a person should see in it. `$run` is the run that was chosen; thresholds are those of the run's
configuration, here the defaults. Two short forms stand for longer queries, which are spelled out at the end.
"""
_KINDS = {
    "lines": "lines",
    "bars": "bars",
    "heat": "heat map, one row a rank",
    "table": "table, one row a GPU",
    "states": "states over time",
}

_SHORT_FORMS = (
    ("of_gpus(METRIC)", "of each GPU that a rank of the run is on, by that rank's host.", of_gpus("METRIC")),
    (
        "of_ports(increase(node_infiniband_METRIC[1h]))",
        "of each port of a network card of the run's hosts.",
        of_ports("METRIC"),
    ),
)


def panels_md(alerts: Alerts) -> str:
    """The whole page (Markdown)."""
    parts = [_HEAD]
    for row in ROWS:
        parts.append(f"## {row.title}\n")
        parts += [_panel(panel, alerts) for panel in row.panels]
    parts.append("## Annotations\n\nDrawn over the panels of the first row.\n")
    for annotation in ANNOTATIONS:
        parts.append(f"### {annotation.title}\n\n{annotation.why}\n\n{_code(annotation.promql, alerts)}")
    parts.append("## Variables\n")
    rows = (
        (f"`{name}`", f"`label_values({metric}, {label})`") for name, (metric, label) in VARIABLES.items()
    )
    parts.append(_table(("variable", "values"), [("`datasource`", "the Prometheus to ask"), *rows]))
    parts.append("\n## Short forms\n")
    parts += [f"`{form}`: {says}\n\n{_code(query, alerts)}" for form, says, query in _SHORT_FORMS]
    return "\n".join(parts)


def _panel(panel: Panel, alerts: Alerts) -> str:
    facts = [f"{_KINDS[panel.kind]}; unit: {panel.unit}"]
    if panel.marks:
        facts.append("lines at " + ", ".join(_mark(mark, alerts) for mark in panel.marks))
    if panel.alerts:
        facts.append("judged by " + ", ".join(f"`{name}`" for name in panel.alerts))
    queries = "\n".join(_line(line, alerts) for line in panel.lines)
    return f"### {panel.title}\n\n{expression(panel.why, alerts)}\n\n_{'; '.join(facts)}_\n\n{queries}"


def _line(line: Line, alerts: Alerts) -> str:
    axis = " (right axis)" if line.right else ""
    return f"`{expression(line.legend, alerts)}`{axis}:\n\n{_code(line.brief or line.promql, alerts)}"


def _mark(mark: Mark, alerts: Alerts) -> str:
    name = f" (`{mark.at}`)" if isinstance(mark.at, str) else ""
    return f"{threshold(mark, alerts):g} {mark.colour}{name}"


def _code(promql: str, alerts: Alerts) -> str:
    return f"```promql\n{expression(promql, alerts)}\n```\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(_lines(head, rows)) + "\n"


def _lines(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(cells)} |"
