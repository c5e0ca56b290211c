"""How is a run watched by Prometheus, Alertmanager and Grafana on other machines?

`train-ledger deploy` writes their files from the same tables as the embedded judge uses; it touches nothing
but its own folder.
"""

from __future__ import annotations

from train_ledger.dash.deploy.counters import COUNTERS, Counter, counters_csv
from train_ledger.dash.deploy.settings import (
    DeployError,
    Settings,
    Target,
    hosts_of,
    targets_of,
    web_address,
)
from train_ledger.dash.deploy.tree import PARTS, DeployedFile, files_of
from train_ledger.dash.deploy.writing import changed_by_hand, put

__all__ = [
    "COUNTERS",
    "PARTS",
    "Counter",
    "DeployError",
    "DeployedFile",
    "Settings",
    "Target",
    "changed_by_hand",
    "counters_csv",
    "files_of",
    "hosts_of",
    "put",
    "targets_of",
    "web_address",
]
