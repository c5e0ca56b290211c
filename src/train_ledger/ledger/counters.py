"""What was told last of each counter, in one line and in those of many steps in a row?

A comprehension over an attribute that is written out takes a quarter of the time of one that is looked up by
its name, and this is asked of every line: so each counter of `FIELDS` stands here, and a test holds that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

__all__ = ["COUNTERS", "newest_counters", "with_counters"]

_Told = Callable[[Sequence[Any]], list[float]]

_TOLD: Mapping[str, _Told] = {
    "skipped": lambda steps: [it.skipped for it in steps if it.skipped is not None],
    "nan_iterations": lambda steps: [it.nan_iterations for it in steps if it.nan_iterations is not None],
    "consumed_samples": lambda steps: [
        it.consumed_samples for it in steps if it.consumed_samples is not None
    ],
    "consumed_tokens": lambda steps: [it.consumed_tokens for it in steps if it.consumed_tokens is not None],
    "stdout_bytes": lambda steps: [it.stdout_bytes for it in steps if it.stdout_bytes is not None],
    "num_alloc_retries": lambda steps: [
        it.num_alloc_retries for it in steps if it.num_alloc_retries is not None
    ],
    "num_ooms": lambda steps: [it.num_ooms for it in steps if it.num_ooms is not None],
    "num_device_alloc": lambda steps: [
        it.num_device_alloc for it in steps if it.num_device_alloc is not None
    ],
    "num_device_free": lambda steps: [it.num_device_free for it in steps if it.num_device_free is not None],
    "dropped_lines": lambda steps: [it.dropped_lines for it in steps if it.dropped_lines is not None],
    "refused_values": lambda steps: [it.refused_values for it in steps if it.refused_values is not None],
    "restart_total": lambda steps: [it.restart_total for it in steps if it.restart_total is not None],
    "ckpt_failed_total": lambda steps: [
        it.ckpt_failed_total for it in steps if it.ckpt_failed_total is not None
    ],
}

COUNTERS = frozenset(_TOLD)


def newest_counters(steps: Sequence[Any], but: Collection[str]) -> dict[str, float]:
    """The last number that these `PlainStep`s tell of each counter, except of those in `but`."""
    told = ((name, read(steps)) for name, read in _TOLD.items() if name not in but)
    return {name: numbers[-1] for name, numbers in told if numbers}


def with_counters(values: Mapping[str, float], earlier: Mapping[str, float]) -> Mapping[str, float]:
    """The values of a line, with the counters of `earlier` ones that it does not tell.

    Counters are not told in every line, and have not gone back to 0 where they are not.
    """
    told_before = (COUNTERS - values.keys()) & earlier.keys()
    # In one order, however the names came: else two equal states would read differently.
    kept = {name: earlier[name] for name in sorted(told_before)}
    return {**values, **kept} if kept else values
