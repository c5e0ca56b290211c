"""What is a panel?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from train_ledger.dash.rules.gpus.places import PLACES, dcgm, gpus, with_node
from train_ledger.dash.rules.recordings import of

__all__ = [
    "RUN",
    "Annotation",
    "Kind",
    "Line",
    "Mark",
    "Panel",
    "Row",
    "by_rank",
    "of_gpus",
    "of_ports",
    "once",
    "with_place",
]

Kind = Literal["lines", "bars", "heat", "table", "states"]
Colour = Literal["green", "orange", "red"]

RUN = 'run="$run"'
"""The matcher that every query has; the dashboard's variable fills it in."""


@dataclass(frozen=True, slots=True)
class Line:
    """One query of a panel.

    `promql` and `legend` may have thresholds of `config.Alerts` as `$name`; `right` draws it on an axis of
    its own, in `unit` where that differs from the panel's. Of a table the legend is the column's name.
    `shade_to` is the legend of a line down to which it is filled. `brief` is what the page shows instead of a
    long query.
    """

    promql: str
    legend: str
    right: bool = False
    unit: str = ""
    shade_to: str = ""
    brief: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """From `at` on the panel is shown in `colour`; a name is that of a threshold of `config.Alerts`."""

    at: float | str
    colour: Colour


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of the dashboard.

    `unit` is Grafana's name of the unit; `marks` are drawn as lines; `alerts` are judged of the same figures
    and give the links to the runbook; `why` tells a person what to see in it, thresholds as in `Line`.
    `scale` is where the colours of a heat map begin and end; `values` are (value, word, colour) of states.
    """

    title: str
    kind: Kind
    unit: str
    lines: tuple[Line, ...]
    why: str
    marks: tuple[Mark, ...] = ()
    alerts: tuple[str, ...] = ()
    width: int = 8
    log: bool = False
    scale: tuple[float, float] | None = None
    values: tuple[tuple[int, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """Panels that one person looks at together."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Annotation:
    """Events that are drawn over the panels of the first row.

    Where `value_is_time` the value is when it happened, in milliseconds; else it is an event wherever the
    query has a sample that is not 0.
    """

    title: str
    promql: str
    says: str
    colour: str
    why: str
    labels: tuple[str, ...] = ()
    value_is_time: bool = False


def of_gpus(field: str, value: str = "{}") -> str:
    """A figure of each GPU on which a rank of the run is, by the rank's own host and index.

    `field` is DCGM's name, of which `value` makes what is drawn. Whose a GPU is follows as in the rules: by
    its UUID, whatever dcgm-exporter calls that and the host.
    """
    known = gpus(value.format(dcgm(field)))
    named, unnamed = f'0 * {PLACES}{{{RUN},uuid!=""}}', f'0 * {PLACES}{{{RUN},uuid=""}}'
    return of(
        "max by (host, gpu)",
        f"{named} + on (uuid) group_left () max by (uuid) ({known})\n"
        f"or {unnamed} + on (host, gpu) group_left () max by (host, gpu) ({known})",
    )


def of_ports(metric: str, window: str = "1h") -> str:
    """By how much a counter of node_exporter's grew, for each port of a network card of the run's hosts.

    A node is known by its host's name, or by the address under which its sidecar is scraped, too.
    """
    grew = with_node(f"increase(node_infiniband_{metric}[{window}])")
    places = f"max by (node, host) ({PLACES}{{{RUN}}})"
    return of(
        "max by (host, device, port)",
        f'label_replace({grew}, "host", "$1", "node", "(.+)") and on (host) {places}\n'
        f"or {grew} + on (node) group_left (host) (0 * topk by (node) (1, {places}))",
    )


def by_rank(promql: str) -> str:
    """One row a rank, in the order of their numbers.

    Prometheus sorts labels as text, in which 10 comes before 2; numbers of one length do not mind.
    """
    padded = f'label_replace({promql}, "row", "00000$1", "rank", "(.*)")'
    return f'max by (row) (label_replace({padded}, "row", "$1", "row", ".*(.{{6}})"))'


def with_place(promql: str) -> str:
    """With where each rank runs now: an exporter of an earlier attempt may still answer."""
    now = f"train_rank_info{{{RUN}}} unless on (run, instance) run_instance:train_superseded:attempt"
    places = f"topk by (run, rank) (1, max by (run, rank, host, gpu) ({now}))"
    return f"{promql}\n* on (run, rank) group_left (host, gpu) {places}"


def once(metric: str) -> str:
    """A figure of each rank once, though exporters of two attempts tell of it."""
    return f"max by (run, rank) (train_{metric}{{{RUN}}})"
