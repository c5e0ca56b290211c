"""Figures as ranks write them, made for the tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from train_ledger.facts import Event, Step
from train_ledger.ops.preflight.figures import (
    Clocks,
    Environment,
    GpuTest,
    Link,
    RankFigures,
    Reading,
)

GIB = 1 << 30


def rank(host: str = "n0", ranks: int = 4, device: str = "cpu", **stages: Any) -> RankFigures:
    recorder = stages.pop("recorder", ())
    backend = "nccl" if device == "cuda" else "gloo"
    return RankFigures(Environment(host, ranks, backend, device, 0, recorder), **stages)


def gpu(**changed: Any) -> GpuTest:
    figures: dict[str, Any] = {
        "name": "NVIDIA H200",
        "total_bytes": 141 * GIB,
        "memory_tested_bytes": 100 * GIB,
        "memory_wrong_bytes": 0,
        "gemm_flops": 960e12,
        "peak_flops": 989e12,
        "xid": 0,
    }
    return GpuTest(**{**figures, **changed})


def clocks(sm_mhz: float = 1950.0, reasons: int | None = 0) -> Clocks:
    return Clocks(300.0, (Reading(sm_mhz, 1980.0, reasons, 60.0),) * 5)


def link(pair: tuple[str, str], gb_per_s: float, op: str = "all_reduce", right: bool = True) -> Link:
    return Link(pair, op, gb_per_s * 1e9, right)


def step(number: int, rank: int = 0, attempt: int = 0, **values: float) -> Step:
    return Step(float(number), number, rank, attempt, values=values)


def event(name: str, rank: int = 0, attempt: int = 0, **details: Any) -> Event:
    return Event(0.0, name, rank, None, attempt, details=details)


@dataclass
class Said:
    """Checks by name."""

    checks: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        return self.checks[name].verdict

    def said(self, name: str) -> str:
        return self.checks[name].said

    def fix(self, name: str) -> str:
        return self.checks[name].fix


def told(checks: Any) -> Said:
    listed = list(checks)
    for check in listed:
        assert check.said
        assert check.fix or check.verdict != "fail", f"{check.name} fails and says no remedy"
    return Said({check.name: check for check in listed})
