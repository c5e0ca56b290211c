"""Runs made for one purpose, second by second: what each rank, each GPU and each kernel would have said."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from train_ledger.dash.backtest import Known, Recording
from train_ledger.facts import Event, Fault, HardwareReading, Step

__all__ = ["START_T", "Made"]

START_T = 1_800_000_000.0
_LOOK_S = 10.0
_WELL = {
    "DCGM_FI_DEV_GPU_TEMP": 60.0,
    "DCGM_FI_DEV_SM_CLOCK": 1980.0,
    "DCGM_FI_DEV_GPU_UTIL": 100.0,
    "DCGM_FI_DEV_POWER_USAGE": 650.0,
    "DCGM_FI_DEV_XID_ERRORS": 0.0,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0.0,
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0.0,
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": 0.0,
    "DCGM_FI_DEV_ROW_REMAP_PENDING": 0.0,
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 0.0,
}
_PORT = {"state_id": 4.0, "rate_bytes_per_second": 5e10, "symbol_error_total": 0.0}


@dataclass(slots=True)
class Made:
    """A job of two hosts with two ranks each, every rank on its own GPU; node1's clock is 33 s ahead.

    `go` lets time pass. What is set between two calls holds from then on: `gpus` and `ports` are what the
    next looks at the hardware read (by `by`: "dcgm", "nvml", or "" for no looks at GPUs), a GPU of `lost` is
    not seen any more; ranks of `silent` say nothing and hosts of `dark` are not heard at all.
    """

    by: str = ""
    step_s: float = 5.0
    leads: Mapping[str, float] = field(default_factory=lambda: {"node0": 0.0, "node1": 33.0})
    values: dict[str, Any] = field(default_factory=lambda: {"loss": 2.0})
    values_of: dict[int, dict[str, float]] = field(default_factory=dict)
    gpus: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    ports: dict[str, dict[str, float]] = field(default_factory=dict)
    lost: set[tuple[str, int]] = field(default_factory=set)
    silent: set[int] = field(default_factory=set)
    dark: set[str] = field(default_factory=set)
    t: float = START_T
    step: int = 0
    attempt: int = 0
    known: list[Known] = field(default_factory=list)
    _look_t: float = START_T

    @property
    def ranks(self) -> list[int]:
        return list(range(2 * len(self.leads)))

    def host(self, rank: int) -> str:
        return list(self.leads)[rank // 2]

    def start(self) -> Made:
        """The launcher starts the next attempt."""
        for rank in self.ranks:
            self.event(
                "run_start",
                [rank],
                world_size=len(self.ranks),
                host=self.host(rank),
                gpu=rank % 2,
                uuid=f"GPU-{rank}",
                pci=f"0000:{0x10 + rank % 2:02x}:00",
                pid=1000 * (self.attempt + 1) + rank,
            )
        return self

    def restart(self, after_s: float, at_step: int) -> Made:
        self.go(after_s, steps=False)
        self.attempt, self.step = self.attempt + 1, at_step
        return self.start()

    def go(self, seconds: float, *, steps: bool = True, each: Callable[[Made], None] | None = None) -> Made:
        """Let time pass, with steps or without; `each` is called before every step."""
        until_t = self.t + seconds
        while self.t + self.step_s <= until_t + 1e-6:
            self._look_until(self.t + self.step_s)
            self.t += self.step_s
            if steps:
                if each:
                    each(self)
                self._complete_step()
        return self

    def _complete_step(self) -> None:
        self.step += 1
        for rank in self.ranks:
            values = {"step_time_s": self.step_s, **self.values, **self.values_of.get(rank, {})}
            t = self._own_t(rank)
            self._say(rank, Step(t, self.step, rank, self.attempt, self.host(rank), values=values))

    def event(self, name: str, ranks: Collection[int] | None = None, **details: Any) -> Made:
        for rank in self.ranks if ranks is None else ranks:
            host = self.host(rank)
            told = Event(self._own_t(rank), name, rank, details.get("step"), self.attempt, host, "", details)
            self._say(rank, told)
        return self

    def save(self, took_s: float) -> Made:
        """A checkpoint that all ranks save, while no step is completed."""
        self.event("phase_start", phase="checkpoint_save").event("ckpt_start", step=self.step)
        self.go(took_s, steps=False)
        self.event("phase_end", phase="checkpoint_save")
        return self.event("ckpt_saved", step=self.step, duration_s=took_s, blocking_s=took_s, durable=True)

    def xid(self, code: int, rank: int) -> Made:
        host = self.host(rank)
        details = {"code": code, "pci": f"0000:{0x10 + rank % 2:02x}:00", "text": f"Xid: {code}, Ch 7"}
        told = Fault(self._own_t(rank), "xid", host=host, details=details)
        self.known.append(Known(self.t, told, self.leads[host], of_host=True))
        return self

    def _own_t(self, rank: int) -> float:
        return self.t + self.leads[self.host(rank)]

    def _say(self, rank: int, what: Step | Event) -> None:
        host = self.host(rank)
        if rank not in self.silent and host not in self.dark:
            self.known.append(Known(self.t, what, self.leads[host]))

    def _look_until(self, t: float) -> None:
        while self._look_t + _LOOK_S <= t:
            self._look_t += _LOOK_S
            for host in self.leads.keys() - self.dark:
                self._look_at(host)

    def _look_at(self, host: str) -> None:
        own_t, first = self._look_t + self.leads[host], 2 * list(self.leads).index(host)
        for gpu in (0, 1) if self.by else ():
            if (host, gpu) in self.lost:
                continue
            values = {**_WELL, **self.gpus.get((host, gpu), {})}
            uuid = f"GPU-{first + gpu}"
            pci = f"0000:{0x10 + gpu:02x}:00"
            reading = HardwareReading(own_t, host, gpu, uuid, pci, by=self.by, values=values)
            self.known.append(Known(self._look_t, reading, self.leads[host], of_host=True))
        if host in self.ports:
            values = {**_PORT, **self.ports[host]}
            port = HardwareReading(own_t, host, device="mlx5_0", port=1, by="sysfs", values=values)
            self.known.append(Known(self._look_t, port, self.leads[host], of_host=True))

    def recording(self) -> Recording:
        """All that was said, and then its end by those that still speak."""
        self.event("run_end")
        known = sorted(self.known, key=lambda it: it.t)
        run = {"run": "r42", "world_size": len(self.ranks), "parallelism": {"dp": len(self.ranks)}}
        return Recording("r42", run, tuple(known), known[-1].t)
