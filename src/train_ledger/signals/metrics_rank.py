"""Which one rank speaks for the whole job where only one may, as for TensorBoard and W&B?

The one that has the loss: the first rank of the last pipeline stage, since the loss is computed there. Under
the schedule ZBVZeroBubble, which lays the stages out as a V, the last stage is on the first ranks again. The
same choice as torchtitan's (components/metrics.py), for ranks laid out in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from train_ledger.signals.harmless.values import whole

__all__ = ["metrics_rank"]

_ORDER = ("tp", "cp", "dp", "pp")
_V_SHAPED = "zbvzerobubble"


def metrics_rank(
    world_size: int, parallelism: Mapping[str, Any] | None = None, schedule: str | None = None
) -> int:
    """The rank that has the loss; 0 where there is no pipeline, or the figures do not make `world_size`.

    `parallelism` is {"dp", "tp", "pp", "cp", "order"} as given to `start`: `order` names the axes, the one
    along which neighbouring ranks lie first, and an axis that is not given has the size 1 – but for dp, which
    is what the others leave. ep is a part of dp and no axis of its own.

    >>> metrics_rank(16, {"tp": 2, "pp": 4}), metrics_rank(8)
    (12, 0)
    >>> metrics_rank(16, {"tp": 2, "pp": 4}, schedule="ZBVZeroBubble")
    0
    """
    given = parallelism or {}
    sizes = _sizes(world_size, given)
    if sizes is None or sizes["pp"] == 1 or _V_SHAPED in (schedule or "").lower():
        return 0
    stride = 1
    for axis in _order(given.get("order")):
        if axis == "pp":
            break
        stride *= sizes[axis]
    return stride * (sizes["pp"] - 1)


def _sizes(world_size: int, given: Mapping[str, Any]) -> dict[str, int] | None:
    """The size of each axis; None where they do not make the world."""
    sizes = {axis: 1 if given.get(axis) is None else whole(given[axis]) or 0 for axis in ("tp", "cp", "pp")}
    shares = sizes["tp"] * sizes["cp"] * sizes["pp"]
    if shares < 1 or min(sizes.values()) < 1 or world_size % shares:
        return None
    sizes["dp"] = world_size // shares
    return sizes if given.get("dp") in (None, sizes["dp"]) else None


def _order(given: object) -> list[str]:
    """The axes, fastest first; also of Megatron's way of writing it, "tp-cp-ep-dp-pp"."""
    named = (
        given.split("-") if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else []
    )
    known = [axis for axis in named if axis in _ORDER]
    return known if set(known) == set(_ORDER) else [*known, *(it for it in _ORDER if it not in known)]
