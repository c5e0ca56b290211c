"""What does Prometheus scrape, and how are the labels of others made ours?"""

from __future__ import annotations

import json
from collections.abc import Iterable

from train_ledger.dash.deploy.settings import DCGM_PORT, NODE_PORT, WATCH_PORT, Settings
from train_ledger.dash.deploy.template import filled
from train_ledger.dash.promql import duration

__all__ = ["prometheus_yml", "targets_json"]

_KINDS = ("train-ledger", "keeper", "dcgm-exporter", "node-exporter")


def prometheus_yml(settings: Settings) -> str:
    """Prometheus' own configuration."""
    alerts = settings.config.alerts
    return filled(
        "prometheus.yml", evaluation=duration(alerts.evaluation_interval_s), scrape=duration(SCRAPE_S)
    )


SCRAPE_S = 5.0
"""A stall is to be notified 20 s after its threshold: a look, a scrape, an evaluation, the group's wait."""


def targets_json(kind: str, settings: Settings) -> str:
    """The file of targets of one job, which Prometheus reads again whenever it changes."""
    ports = {"keeper": WATCH_PORT, "dcgm-exporter": DCGM_PORT, "node-exporter": NODE_PORT}
    if kind == "train-ledger":
        addresses: Iterable[str] = [f"{target.host}:{target.port}" for target in settings.targets]
    elif kind == "keeper":
        addresses = [f"127.0.0.1:{WATCH_PORT}"]
    else:
        addresses = dict.fromkeys(f"{target.host}:{ports[kind]}" for target in settings.targets)
    return json.dumps([{"targets": list(addresses)}], indent=2) + "\n"
