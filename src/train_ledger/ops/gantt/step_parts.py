"""Where within a step do its parts stand, when only their durations are known?

In the order of a training loop: data, forward, backward, optimizer, checkpoint, each directly after the
other from the step's start on; what is waited in collectives is the end of the backward pass, since there the
gradients are reduced. That is a reconstruction. The sum may fall short of the step (the rest is other work)
or exceed it (GPU times are those of the step before); what does not fit is cut at the step's end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["PASSES", "Part", "parts_of"]

_IN_ORDER = (
    ("data_wait_s", "data"),
    ("fwd_s", "forward"),
    ("bwd_s", "backward"),
    ("compute_s", "compute"),
    ("comm_wait_s", "comm_wait"),
    ("opt_s", "optimizer"),
    ("ckpt_s", "checkpoint"),
    ("gc_s", "gc"),
    ("log_s", "log"),
)
PASSES = ("data_wait_s", "fwd_s", "bwd_s", "opt_s")
"""What every step of a training loop goes through, one after the other."""

_INSIDE = frozenset({"compute_s", "comm_wait_s"})
_SHORTEST_US = 1


class Part(NamedTuple):
    """One part of a step; `seconds` is what was measured, of which the picture may show less."""

    name: str
    start_us: int
    end_us: int
    seconds: float


def parts_of(values: Mapping[str, float], start_us: int, end_us: int) -> list[Part]:
    """The parts of a step, an outer one before what it holds; none goes beyond the step, none overlaps.

    >>> for part in parts_of({"data_wait_s": 1e-6, "bwd_s": 9e-6, "comm_wait_s": 4e-6}, 100, 108):
    ...     print(*part)
    data 100 101 1e-06
    backward 101 108 9e-06
    comm_wait 104 108 4e-06
    """
    by_passes = "fwd_s" in values or "bwd_s" in values
    parts: list[Part] = []
    at_us = start_us
    for field, name in _IN_ORDER:
        seconds = values.get(field)
        if seconds is None or not 0 < seconds < 1e9 or (by_passes and field in _INSIDE):
            continue
        length_us = round(seconds * 1e6)
        if length_us < _SHORTEST_US or at_us >= end_us:
            continue
        part = Part(name, at_us, min(at_us + length_us, end_us), seconds)
        parts.append(part)
        if field == "bwd_s":
            parts += _waited(values.get("comm_wait_s"), part)
        at_us = part.end_us
    return parts


def _waited(seconds: float | None, backward: Part) -> list[Part]:
    if seconds is None or not 0 < seconds < 1e9 or round(seconds * 1e6) < _SHORTEST_US:
        return []
    start_us = max(backward.start_us, backward.end_us - round(seconds * 1e6))
    return [Part("comm_wait", start_us, backward.end_us, seconds)]
