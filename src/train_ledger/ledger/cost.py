"""What has an incident cost so far?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from train_ledger.answer import Impact
from train_ledger.fields import read_number
from train_ledger.ledger.state import RankState

__all__ = ["gpu_price_per_hour", "has_gpus", "impact"]

_GPU_MEMORY = "mem_allocated_peak"


def impact(wall_s: float, gpus: int | None, price_per_hour: float | None = None) -> Impact:
    """What it costs that `gpus` GPUs stood for `wall_s` seconds; None where the ranks have none.

    `cost` is None where no price is known.

    >>> impact(1800, 1024, 2.5)
    Impact(wall_s=1800, gpu_hours=512.0, cost=1280.0)
    """
    if gpus is None:
        return Impact(wall_s, None)
    gpu_hours = wall_s * gpus / 3600
    return Impact(wall_s, gpu_hours, None if price_per_hour is None else gpu_hours * price_per_hour)


def has_gpus(run_json: Mapping[str, Any], ranks: Iterable[RankState]) -> bool:
    """Whether the ranks of a run train on GPUs, by what run.json and the ranks themselves say.

    Ranks that say who they are, and of no GPU, have none; where only logs tell of them, that is not known,
    and they are taken to have one each. A device or a price in run.json speaks for GPUs that NVML does not
    know, and so does their memory.
    """
    device = run_json.get("device")
    if isinstance(device, str) and device:
        return device.strip().lower() != "cpu"
    own = list(ranks)
    told = [it for it in own if it.pid is not None]
    return (
        not own
        or len(told) < len(own)
        or run_json.get("gpu_price_per_hour") is not None
        or any(it.gpu is not None or it.uuid or it.pci or _GPU_MEMORY in it.values for it in own)
    )


def gpu_price_per_hour(run_json: Mapping[str, Any], configured: float | None) -> float | None:
    """The price of a GPU-hour: run.json's before the configured one; None where neither says."""
    own = read_number(run_json.get("gpu_price_per_hour"))
    return own if own is not None and 0 <= own < math.inf else configured
