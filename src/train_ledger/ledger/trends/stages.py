"""Which ranks do the same work in a step?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Stages", "coordinates_of", "stages_of"]

_AXES = ("tp", "cp", "dp", "pp")

Stages = Callable[[int], int]


def stages_of(world_size: int | None, parallelism: Mapping[str, Any]) -> Stages | None:
    """The pipeline stage of each rank, by run.json's `parallelism`; None where that cannot be said.

    An axis that is not given has the size 1, but for dp, which is what the others leave; `order` names the
    axes from the fastest on, as a list or as Megatron writes it.

    >>> stage = stages_of(16, {"tp": 2, "pp": 4})
    >>> [stage(rank) for rank in (0, 3, 4, 15)]
    [0, 0, 1, 3]
    >>> stage = stages_of(8, {"pp": 2, "dp": 4, "order": "tp-pp-dp"})
    >>> [stage(rank) for rank in (0, 1, 2)]
    [0, 1, 0]
    >>> stages_of(7, {"pp": 2}), stages_of(None, {})(5)
    (None, 0)
    """
    if _size(parallelism.get("pp")) == 1:
        return lambda rank: 0
    return coordinates_of("pp", world_size, parallelism)


def coordinates_of(axis: str, world_size: int | None, parallelism: Mapping[str, Any]) -> Stages | None:
    """Where each rank stands along one axis (tp, cp, dp or pp); None where that cannot be said.

    >>> replica = coordinates_of("dp", 8, {"tp": 2, "pp": 2})
    >>> [replica(rank) for rank in range(8)]
    [0, 0, 1, 1, 0, 0, 1, 1]
    """
    sizes = {name: _size(parallelism.get(name)) for name in _AXES}
    others = sizes["tp"] * sizes["cp"] * sizes["pp"]
    if world_size is None or others < 1 or world_size % others:
        return None
    if parallelism.get("dp") not in (None, world_size // others):
        return None
    sizes["dp"] = world_size // others
    stride = 1
    for name in _order(parallelism.get("order")):
        if name == axis:
            break
        stride *= sizes[name]
    return lambda rank: rank // stride % sizes[axis]


def _size(given: object) -> int:
    if given is None:
        return 1
    return given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else 0


def _order(given: object) -> list[str]:
    named = given.split("-") if isinstance(given, str) else given if isinstance(given, list | tuple) else ()
    known = [axis for axis in named if axis in _AXES]
    return [*dict.fromkeys([*known, *_AXES])]
