"""How long did each rank work itself in each step, and on what?

Own work is what a rank does without waiting for others: its computing, its waiting for data, its garbage
collection, logging and checkpoints, and what the host did besides. What of these is a part of `compute_s`
depends on who measured; only what does not fit into the step besides it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from train_ledger.slow.peers.verdict import Phase
from train_ledger.slow.table import StepTable
from train_ledger.slow.table.step_table import Floats

__all__ = ["OwnWork", "own_work"]

_OF_HOST: Mapping[Phase, str] = {"gc": "gc_s", "logging": "log_s"}
_MORE_THAN_STEP = 1.1
_APART: Mapping[Phase, str] = {"data": "data_wait_s", "checkpoint": "ckpt_s"}


@dataclass(frozen=True, slots=True)
class OwnWork:
    """Seconds of own work, ranks × steps, and its parts, which sum to it; `waits_s` in collectives.

    `by` says which figure it rests on: compute_s, comm_wait_s (the step without waiting), fwd_s (where a
    rank's forward pass waits for nobody), or parts (what the host did alone: computing is not known).
    """

    seconds: Floats
    parts: Mapping[Phase, Floats]
    step_s: Floats
    waits_s: Floats | None
    by: str


def own_work(table: StepTable) -> OwnWork | None:
    """What the table tells of the ranks' own work; None where it tells nothing of it."""
    step_s = table.of("step_time_s")
    waits_s = table.of("comm_wait_s") if table.tells("comm_wait_s") else None
    apart = {phase: np.nan_to_num(table.of(name)) for phase, name in _APART.items()}
    beside = {phase: np.nan_to_num(table.of(name)) for phase, name in _OF_HOST.items()}
    compute_s, by = _computing(table, step_s, waits_s, apart)
    if compute_s is None:
        told = [name for name in (*_APART.values(), *_OF_HOST.values()) if table.tells(name)]
        if not told:
            return None
        compute_s, by = np.zeros(table.shape), "parts"
    rest_s = _rest(step_s, compute_s, waits_s, apart, by)
    of_host_s = np.asarray(sum(beside.values()))
    outside_s = np.minimum(of_host_s, rest_s)
    share = np.divide(outside_s, of_host_s, out=np.zeros_like(outside_s), where=of_host_s > 0)
    parts: dict[Phase, Floats] = {"compute": compute_s}
    for phase, told_s in beside.items():
        inside_s = np.minimum(told_s * (1 - share), parts["compute"])
        parts["compute"] = parts["compute"] - inside_s
        parts[phase] = told_s * share + inside_s
    parts.update(apart)
    if by == "compute_s":
        parts["host"] = rest_s - outside_s
    return OwnWork(np.asarray(sum(parts.values())), parts, step_s, waits_s, by)


def _rest(
    step_s: Floats, compute_s: Floats, waits_s: Floats | None, apart: Mapping[Phase, Floats], by: str
) -> Floats:
    """The time of each step in which something may stand that is no part of the computing.

    Where nobody tells the waiting, our own monitor's word holds: what the host did is a part of compute_s.
    """
    if by in ("fwd_s", "parts"):
        return np.full(step_s.shape, np.inf)
    if waits_s is None or by == "comm_wait_s":
        return np.zeros(step_s.shape)
    rest_s = np.maximum(step_s - compute_s - waits_s - np.asarray(sum(apart.values())), 0.0)
    return np.asarray(np.nan_to_num(rest_s))


def _computing(
    table: StepTable, step_s: Floats, waits_s: Floats | None, apart: Mapping[Phase, Floats]
) -> tuple[Floats | None, str]:
    if table.tells("compute_s") and not (waits_s is not None and _holds_waits(table, step_s, waits_s)):
        return table.of("compute_s"), "compute_s"
    if waits_s is not None:
        return np.maximum(step_s - waits_s - sum(apart.values()), 0.0), "comm_wait_s"
    if table.tells("fwd_s") and _waits_for_nobody(table):
        return table.of("fwd_s"), "fwd_s"
    return None, ""


def _holds_waits(table: StepTable, step_s: Floats, waits_s: Floats) -> bool:
    """Whether compute_s was taken by the wall, so that with the waiting it is more than the step."""
    with np.errstate(divide="ignore", invalid="ignore"):
        both_s = (table.of("compute_s") + waits_s) / step_s
    told = both_s[np.isfinite(both_s)]
    return bool(told.size and np.median(told) > _MORE_THAN_STEP)


def _waits_for_nobody(table: StepTable) -> bool:
    """Whether a rank's forward pass holds no collective that only some ranks wait in.

    Those of tensor parallelism and the pipeline make the peers of a slow rank look slow, too.
    """
    seats = {(place.stage, place.replica) for place in table.places}
    return table.layout_told and len({stage for stage, _ in seats}) == 1 and len(seats) == len(table.places)
