"""Which fault is it that the watchdog, or a check of collectives, said?"""

from __future__ import annotations

from train_ledger.facts import Fault
from train_ledger.sources.logs.said import Kind, Said

__all__ = ["fault_of"]

_FAULTS: dict[Kind, str] = {
    "timeout": "watchdog_timeout",
    "failure": "watchdog_timeout",
    "gloo_timeout": "watchdog_timeout",
    "stuck": "watchdog_timeout",
    "mismatch": "desync",
    "barrier": "desync",
    "absent": "desync",
    "unfinished": "desync",
    "peer_gone": "nccl_error",
    "store_gone": "nccl_error",
}


def fault_of(said: Said) -> Fault | None:
    """The fact that a statement is; None for the progress of a dump and for settings: they are no trouble."""
    code = _FAULTS.get(said.kind)
    if code is None:
        return None
    named = (
        "kind",
        "rank_in_group",
        "group",
        "seq",
        "op",
        "timeout_ms",
        "ran_ms",
        "last_enqueued",
        "last_completed",
    )
    details = {name: value for name in named if (value := getattr(said, name)) is not None}
    return Fault(said.t, code, said.rank, host=said.host, source=said.source, details=details)
