"""What does a Prometheus hold of a run?

Its HTTP API is asked, within a time and for an answer of bounded size; what it says are samples, each with
its labels. Nothing of an address but its host is ever shown: a user's name and password may stand in it.
"""

from __future__ import annotations

from train_ledger.sources.prometheus.address import Address, PrometheusError
from train_ledger.sources.prometheus.client import Prometheus, Sample
from train_ledger.sources.prometheus.run_series import RunSeries, known_runs, read_run_series

__all__ = [
    "Address",
    "Prometheus",
    "PrometheusError",
    "RunSeries",
    "Sample",
    "known_runs",
    "read_run_series",
]
