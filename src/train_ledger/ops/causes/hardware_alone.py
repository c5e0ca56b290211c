"""Nothing is known of a run but what the kernels of its hosts recorded: what do they say?"""

from __future__ import annotations

from train_ledger.answer import Diagnosis
from train_ledger.ops.causes.earlier import gpus_told
from train_ledger.ops.causes.first import with_first
from train_ledger.ops.seen import Seen
from train_ledger.ops.troubles import first_cause, troubles_told

__all__ = ["of_hardware_alone"]


def of_hardware_alone(seen: Seen) -> Diagnosis | None:
    """A fault on a host of a run of which nothing else is known; None where the kernels tell of none."""
    told = troubles_told(seen.run_dir, seen.state, seen.config.xid, until_t=seen.at)
    first = first_cause([it for it in told.troubles if it.kind == "xid"], ())
    if first is None:
        return None
    found = Diagnosis(
        state=seen.state.state,
        cause="hardware.xid",
        hosts=first.hosts,
        gpus=gpus_told(first),
        confidence="low",
        since_t=first.t,
        not_observed=("the run: no rank has written a line, so whether one was on that GPU is not known",),
    )
    return with_first(found, first)
