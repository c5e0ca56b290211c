"""How do the hours of a run, its data, its saves and its hosts read as Prometheus metrics?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from train_ledger.dash.conditions import save_ratio
from train_ledger.dash.metric_text import family, labels
from train_ledger.dash.telemetry_conditions import hosts_seen
from train_ledger.ledger.state import RunState

__all__ = ["goodput_metrics"]


def goodput_metrics(state: RunState) -> Iterator[str]:
    """The families; whoever folds only a part of the ranks tells what those know."""
    run = labels(run=state.run)
    if (productive := state.productive) is not None:
        yield family(
            "train_productive_seconds_total",
            "counter",
            "Time of steps that brought the run further than ever before.",
            [(run, productive.total_s)],
        )
        yield family(
            "train_productive_since_timestamp_seconds",
            "gauge",
            "From when on train_productive_seconds_total is known.",
            [(run, productive.since_t)],
        )
    yield family(
        "train_data_position_regressed_total",
        "counter",
        "Restarts after which the run went on at other data than it had stood at.",
        [(run, float(state.data_regress_total))],
    )
    if (ratio := save_ratio(state)) is not None:
        yield family(
            "train_ckpt_duration_ratio",
            "gauge",
            "How many times as long as usual the last checkpoint took to save.",
            [(run, ratio)],
        )
    hosts = [(labels(run=state.run, host=it.host), it) for it in hosts_seen(state)]
    yield family(
        "train_host_heard_timestamp_seconds",
        "gauge",
        "The newest line of a host's ranks, or look at its hardware.",
        [(label, it.heard_t) for label, it in hosts if it.heard_t > -math.inf],
    )
    yield family(
        "train_host_stepped_timestamp_seconds",
        "gauge",
        "When the last step was completed on a host.",
        [(label, it.stepped_t) for label, it in hosts if it.stepped_t > -math.inf],
    )
