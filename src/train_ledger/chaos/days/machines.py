"""What do the GPUs and the network cards of the hosts read while a job runs on them?

A card's figures follow what the job does – trains, waits in a collective, or nothing – and what was done to
the card on purpose. Names and units are those of dcgm-exporter and node_exporter.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from train_ledger.chaos.story import identity_at
from train_ledger.facts import HardwareReading

__all__ = ["HW_SLOWDOWN", "HW_THERMAL", "IDLE", "POWER_CAP", "SW_THERMAL", "Card", "Load", "Machines"]

Load = Literal["trains", "waits", "idle"]

IDLE, POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL = 0x1, 0x4, 0x8, 0x20, 0x40
"""Bits of the clock-event reasons."""

_USUAL_MHZ = 1755.0
_UTIL: Mapping[Load, float] = {"trains": 98.0, "waits": 100.0, "idle": 0.0}
_POWER_W: Mapping[Load, float] = {"trains": 640.0, "waits": 240.0, "idle": 92.0}
_TENSOR: Mapping[Load, float] = {"trains": 0.42, "waits": 0.0, "idle": 0.0}


@dataclass(slots=True)
class Card:
    """One GPU: `present` whether it answers, `profiled` whether a profiler holds its counters; the counts
    and codes as they stand."""

    uuid: str
    pci: str
    present: bool = True
    profiled: bool = False
    clock_factor: float = 1.0
    reasons: int = 0
    xid: int = 0
    sbe: int = 0
    dbe: int = 0
    remap_pending: int = 0
    remap_failed: int = 0


class Machines:
    """The cards of all hosts that a job has had; `usual_mhz` is what they run at under load."""

    def __init__(self, per_host: int, rng: random.Random, usual_mhz: float = _USUAL_MHZ) -> None:
        self.usual_mhz = usual_mhz
        self.capped = False
        self.silent_hosts: set[str] = set()
        self._per_host = per_host
        self._rng = rng
        self._cards: dict[str, list[Card]] = {}

    def cards(self, host: str) -> list[Card]:
        """The GPUs of a host by their index; they are made when they are first asked for."""
        if host not in self._cards:
            known = (identity_at(host, local, 0) for local in range(self._per_host))
            self._cards[host] = [Card(it["uuid"], it["pci"].lower()[4:]) for it in known]
        return self._cards[host]

    def readings(self, host: str, t: float, load: Load) -> Iterator[HardwareReading]:
        """One look at a host, on whose clock it is `t`."""
        if host in self.silent_hosts:
            return
        for gpu, card in enumerate(self.cards(host)):
            if card.present:
                values = self._values(card, load)
                yield HardwareReading(t, host, gpu, card.uuid, card.pci, by="dcgm", values=values)
        yield HardwareReading(t, host, device="mlx5_0", port=1, by="sysfs", values=_LINK_UP)

    def _values(self, card: Card, load: Load) -> dict[str, float]:
        noise = self._rng.random
        factor = card.clock_factor if load != "idle" else 0.2
        reasons = card.reasons | (IDLE if load == "idle" else POWER_CAP if self.capped else 0)
        wander = (0.88 + 0.12 * noise()) if self.capped and load == "trains" else (0.99 + 0.02 * noise())
        values = {
            "DCGM_FI_DEV_SM_CLOCK": round(self.usual_mhz * factor * wander),
            "DCGM_FI_DEV_MEM_CLOCK": 2619.0,
            "DCGM_FI_DEV_GPU_TEMP": round(35 + 30 * _UTIL[load] / 100 + 3 * noise()),
            "DCGM_FI_DEV_MEMORY_TEMP": round(45 + 35 * _UTIL[load] / 100 + 3 * noise()),
            "DCGM_FI_DEV_POWER_USAGE": _POWER_W[load] * (0.95 + 0.1 * noise()) * card.clock_factor,
            "DCGM_FI_DEV_GPU_UTIL": _UTIL[load],
            "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": float(reasons),
            "DCGM_FI_DEV_XID_ERRORS": float(card.xid),
            "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": float(card.sbe),
            "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": float(card.dbe),
            "DCGM_FI_DEV_ROW_REMAP_PENDING": float(card.remap_pending),
            "DCGM_FI_DEV_ROW_REMAP_FAILURE": float(card.remap_failed),
            "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 0.0,
            "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 0.0,
            "DCGM_FI_DEV_FB_USED": 70_000.0 if load != "idle" else 4.0,
        }
        if not card.profiled:
            values["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"] = _TENSOR[load] * (0.95 + 0.1 * noise())
            values["DCGM_FI_PROF_SM_ACTIVE"] = _UTIL[load] / 100 * (0.9 + 0.05 * noise())
        return values

    def all_of(self, hosts: Sequence[str]) -> list[Card]:
        return [card for host in hosts for card in self.cards(host)]


_LINK_UP: Mapping[str, float] = {
    "state_id": 4.0,
    "physical_state_id": 5.0,
    "rate_bytes_per_second": 50e9,
    "port_errors_received_total": 0.0,
    "port_discards_transmitted_total": 0.0,
    "link_downed_total": 0.0,
    "symbol_error_total": 0.0,
    "link_error_recovery_total": 0.0,
    "local_link_integrity_errors_total": 0.0,
}
