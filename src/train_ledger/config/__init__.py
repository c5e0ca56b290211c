"""What did the user set, and what holds where they set nothing?

`train-ledger.toml` in the run directory, else in the user's configuration folder, else the defaults. Every
threshold of DESIGN's alerts has a name here. A key that is not known is an error that lists those that are:
a misspelt threshold would otherwise be found out by the page that did not come.
"""

from __future__ import annotations

from train_ledger.config.reading import ConfigError, load, with_alerts
from train_ledger.config.tables import (
    FIRST_ANSWERS,
    Alerts,
    Config,
    Cost,
    Dcgm,
    Hardware,
    Limits,
    Notify,
    Prometheus,
    Respond,
    Trace,
    Xid,
)

__all__ = [
    "FIRST_ANSWERS",
    "Alerts",
    "Config",
    "ConfigError",
    "Cost",
    "Dcgm",
    "Hardware",
    "Limits",
    "Notify",
    "Prometheus",
    "Respond",
    "Trace",
    "Xid",
    "load",
    "with_alerts",
]
