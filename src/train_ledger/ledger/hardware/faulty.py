"""Which GPUs of the run failed, so that it is known by more than one witness of the state?

Read by the table of states below and by the alerts above; so both say the same of the same GPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.config import Alerts
from train_ledger.ledger.hardware.places import host_key
from train_ledger.ledger.hardware.records import GpuState, XidState
from train_ledger.ledger.state import RunState

__all__ = ["gpu_trouble_t", "lost_gpus", "xids_of_run"]

_AFTER_THE_STOP_S = 120.0
"""The GPU of a run whose processes are gone may be another's by then."""


def xids_of_run(state: RunState) -> Iterator[tuple[GpuState, XidState]]:
    """What is reported of GPUs of the run in its time, of any level but "ignore"."""
    over_t = state.since_t if state.state in ("stopped", "finished") else None
    for gpu in state.gpus:
        for told in gpu.xids if gpu.ranks else ():
            in_time = over_t is None or told.first_t <= over_t + _AFTER_THE_STOP_S
            if told.level != "ignore" and in_time:
                yield gpu, told


def lost_gpus(state: RunState, alerts: Alerts, *, at_any_time: bool = False) -> list[GpuState]:
    """GPUs of the run that were read once and are no longer, while others of the same host are.

    Without those of which an XID says it already. Of a host of which nothing is read any more, nothing; with
    `at_any_time` those that were so when it was last read.
    """
    newest: dict[str, float] = {}
    for gpu in state.gpus:
        if gpu.seen_t is not None:
            key = host_key(gpu.host)
            newest[key] = max(gpu.seen_t, newest.get(key, gpu.seen_t))
    told = {(it.host, it.gpu, it.uuid) for it, xid in xids_of_run(state) if xid.level == "page"}
    lost = []
    for gpu in state.gpus:
        if not gpu.ranks or gpu.seen_t is None or (gpu.host, gpu.gpu, gpu.uuid) in told:
            continue
        last_t = newest[host_key(gpu.host)]
        is_read = at_any_time or state.t - last_t < alerts.gpu_lost_s
        if is_read and last_t - gpu.seen_t >= alerts.gpu_lost_s:
            lost.append(gpu)
    return lost


def gpu_trouble_t(state: RunState, alerts: Alerts) -> float | None:
    """Since when a GPU of the run is in trouble that pages, in the newest attempt; None where none is."""
    began_t = state.attempts[-1].started_t if state.attempts else None
    if began_t is None:
        return None
    times = [xid.last_t for _, xid in xids_of_run(state) if xid.level == "page"]
    times += [gpu.dbe_t for gpu in state.gpus if gpu.ranks and gpu.dbe_t is not None]
    times += [gpu.seen_t for gpu in lost_gpus(state, alerts) if gpu.seen_t is not None]
    return min((t for t in times if t >= began_t), default=None)
