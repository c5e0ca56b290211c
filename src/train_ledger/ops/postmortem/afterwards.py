"""What was wrong, where the keeper was not asked to find out at the time?

Without first answers a journal holds no verdict. The run directory is looked at as it was then: late enough
for dumps to be there, and before the run was restarted or the alert was over.
"""

from __future__ import annotations

from dataclasses import replace

from train_ledger.config import Config
from train_ledger.ops.diagnose import diagnose
from train_ledger.ops.postmortem.incident import Incident
from train_ledger.run_dir import RunDir

__all__ = ["with_verdict"]

_DUMPS_BY_THEN_S = 600.0
_NOTHING = ("none", "unknown")


def with_verdict(incident: Incident, run_dir: RunDir, config: Config) -> Incident:
    """The incident with a verdict on it; as it is where it has one, or nobody can say when it was.

    Where nobody can say why it was in trouble, the verdict says that, and since when.

    Raises RunDirError where run.json or the signals cannot be used.
    """
    opened_t = incident.opened_t
    if incident.verdict is not None or opened_t is None:
        return incident
    best = incident
    for t in dict.fromkeys((_latest(incident, opened_t), opened_t)):
        found = diagnose(run_dir, config, at=t)
        if found.cause not in _NOTHING:
            return replace(incident, found_later=found, found_at=t)
        if found.cause == "unknown" and best is incident:
            best = replace(incident, found_later=found, found_at=t)
    return best


def _latest(incident: Incident, opened_t: float) -> float:
    """Before what changed the scene: a restart, the end of the alert, the end of the incident."""
    ends = [opened_t + _DUMPS_BY_THEN_S]
    for it in incident.happened:
        if it.t is None or it.t <= opened_t:
            continue
        is_restart = it.kind == "state_changed" and it.entry.get("state") in ("restarting", "recovering")
        if is_restart or it.kind in ("alert_resolved", "incident_closed"):
            ends.append(it.t - 1.0)
    return max(opened_t, min(ends))
