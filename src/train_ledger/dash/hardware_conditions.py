"""What, in the hardware under a run, is a condition that somebody may have to know of?

The embedded twins of what PromQL judges by windows over dcgm-exporter's and node_exporter's metrics: the same
windows, over the state of the run.
"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.config import Alerts
from train_ledger.ledger.hardware.faulty import lost_gpus, xids_of_run
from train_ledger.ledger.hardware.gpu import REMAP_PENDING
from train_ledger.ledger.hardware.places import host_key
from train_ledger.ledger.hardware.port import RATE
from train_ledger.ledger.hardware.records import GpuState, PortState, XidState
from train_ledger.ledger.state import RunState

__all__ = [
    "bad_ports",
    "failing_memory",
    "is_low",
    "links_with_errors",
    "lost_gpus",
    "low_times",
    "recent_xids",
    "sbe_growing",
    "why_port_is_bad",
]


def recent_xids(state: RunState, alerts: Alerts, level: str) -> Iterator[tuple[GpuState, XidState]]:
    """XIDs of this level within the window; of a code that pages by now nothing is on record besides."""
    recent = [(gpu, xid) for gpu, xid in xids_of_run(state) if state.t - xid.last_t < alerts.xid_window_s]
    paging = {(gpu.host, gpu.ranks, xid.code) for gpu, xid in recent if xid.level == "page"}
    for gpu, xid in recent:
        if xid.level == level and (level == "page" or (gpu.host, gpu.ranks, xid.code) not in paging):
            yield gpu, xid


def failing_memory(state: RunState, alerts: Alerts) -> Iterator[tuple[GpuState, str]]:
    """GPUs with an uncorrected memory error within the window, or a row that waits to be remapped."""
    for gpu in _of_ranks(state):
        if gpu.dbe_t is not None and state.t - gpu.dbe_t < alerts.ecc_window_s:
            yield gpu, "an uncorrected memory error"
        elif gpu.values.get(REMAP_PENDING, 0.0) > 0:
            yield gpu, "a row of its memory waits to be remapped, until the GPU is reset"


def sbe_growing(state: RunState, alerts: Alerts) -> list[GpuState]:
    """GPUs whose corrected memory errors grew by more than the threshold within their window."""
    return [gpu for gpu in _of_ranks(state) if gpu.sbe_grown > alerts.ecc_sbe_growth]


def links_with_errors(state: RunState) -> list[GpuState]:
    """GPUs whose NVLink error counters grew within their window."""
    return [gpu for gpu in _of_ranks(state) if gpu.links_grown]


def is_low(gpu: GpuState, state: RunState, alerts: Alerts) -> bool:
    """Whether its clocks have been low for long enough, and were when it was last read, not long ago."""
    if gpu.low_since_t is None or gpu.seen_t is None:
        return False
    return gpu.seen_t - gpu.low_since_t >= alerts.clock_low_s >= state.t - gpu.seen_t


def low_times(gpu: GpuState, state: RunState, alerts: Alerts) -> int:
    """How often its clocks were low within the window."""
    return sum(t > state.t - alerts.clock_low_window_s for t in gpu.low_t)


def bad_ports(state: RunState) -> Iterator[tuple[PortState, str]]:
    """Ports of the run's hosts that count errors, are down, or are slower than usual; and why."""
    hosts = {host_key(rank.host): rank.host for rank in state.ranks.values() if rank.host}
    for port in state.ports:
        if host_key(port.host) in hosts and (why := why_port_is_bad(port)):
            yield port, why


def why_port_is_bad(port: PortState) -> str:
    """In words; "" where it is well."""
    if port.down_since_t is not None:
        return "the link is down"
    rate = port.values.get(RATE)
    if rate is not None and port.usual_rate is not None and rate < port.usual_rate:
        return f"the link runs at {rate * 8 / 1e9:.0f} Gb/s where {port.usual_rate * 8 / 1e9:.0f} are usual"
    return ", ".join(f"{name.removesuffix('_total')} +{more:.0f}" for name, more in port.grown.items())


def _of_ranks(state: RunState) -> list[GpuState]:
    return [gpu for gpu in state.gpus if gpu.ranks]
