"""What is wrong with a run of which a live Prometheus alone tells?

Its series are folded into the same state that files are folded into, and answered with the same diagnosis;
what Prometheus cannot tell – stacks, dumps, phases – is said.
"""

from __future__ import annotations

from train_ledger.ops.prometheus.cause import diagnose_state
from train_ledger.ops.prometheus.following import FollowedRun, diagnose_by_prometheus
from train_ledger.ops.prometheus.state import state_of

__all__ = ["FollowedRun", "diagnose_by_prometheus", "diagnose_state", "state_of"]
