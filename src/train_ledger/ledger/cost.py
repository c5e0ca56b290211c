"""What has an incident cost so far?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from train_ledger.answer import Impact
from train_ledger.fields import read_number

__all__ = ["gpu_price_per_hour", "impact"]


def impact(wall_s: float, world_size: int, price_per_hour: float | None = None) -> Impact:
    """What it costs that `world_size` GPUs stood for `wall_s` seconds; cost None where no price is known.

    >>> impact(1800, 1024, 2.5)
    Impact(wall_s=1800, gpu_hours=512.0, cost=1280.0)
    """
    gpu_hours = wall_s * world_size / 3600
    return Impact(wall_s, gpu_hours, None if price_per_hour is None else gpu_hours * price_per_hour)


def gpu_price_per_hour(run_json: Mapping[str, Any], configured: float | None) -> float | None:
    """The price of a GPU-hour: run.json's before the configured one; None where neither says."""
    own = read_number(run_json.get("gpu_price_per_hour"))
    return own if own is not None and 0 <= own < math.inf else configured
