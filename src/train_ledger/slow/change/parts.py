"""Which part of the steps changed, and when?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from train_ledger.slow.change.point import Change, change
from train_ledger.slow.peers.work import own_work
from train_ledger.slow.table import StepTable
from train_ledger.slow.table.joining import side_by_side
from train_ledger.slow.table.step_table import Flags, Floats

__all__ = ["PARTS", "changes_of", "series_of"]

PARTS = (
    "step_time_s", "compute_s", "comm_wait_s", "data_wait_s", "log_s", "gc_s", "ckpt_s", "fwd_s", "bwd_s",
    "opt_s",
)  # fmt: skip

_OF_STEP = 0.02
_FEW_COLLECT = 0.3


def series_of(table: StepTable, name: str) -> Floats:
    """Seconds of a part in each step, in the median of the ranks; compute_s without log_s and gc_s.

    Of comm_wait_s the least of the ranks: who waits least waits for no other rank, but for the transfer – and
    for the bubble of a pipeline, which grows with the slowest rank's work and is taken out as far as it does.
    """
    values = table.of(name)
    if name == "compute_s":
        values = np.maximum(values - np.nan_to_num(table.of("log_s")) - np.nan_to_num(table.of("gc_s")), 0.0)
    found = np.full(len(table.steps), np.nan)
    told = np.isfinite(values).any(axis=0)
    over_ranks = np.nanmin if name == "comm_wait_s" else np.nanmedian
    found[told] = over_ranks(values[:, told], axis=0)
    return found / _grown(table) if name == "comm_wait_s" and len(set(table.stages)) > 1 else found


def _grown(table: StepTable) -> Floats:
    """The work of each step's slowest rank, as a multiple of its median; 1 where it is not told."""
    work = own_work(table)
    grown = np.ones(len(table.steps))
    if work is None:
        return grown
    told = np.isfinite(work.seconds).any(axis=0)
    slowest_s = np.nanmax(work.seconds[:, told], axis=0)
    usual_s = float(np.median(slowest_s)) if slowest_s.size else 0.0
    if usual_s > 0:
        grown[told] = np.maximum(slowest_s / usual_s, 1e-9)
    return grown


def wanted_of(table: StepTable, name: str) -> Flags:
    """The steps by which a part is judged: steady ones, and for all but gc_s those without a collection."""
    wanted = table.steady
    if name == "ckpt_s":
        wanted = ~(table.marks.restart | table.marks.warm_up | table.marks.evaluation)
    collects = table.marks.gc
    return wanted & ~collects if name != "gc_s" and collects.mean() < _FEW_COLLECT else wanted


def changes_of(table: StepTable, baseline: StepTable | None = None) -> Mapping[str, Change]:
    """By part what changed within the table, or since an earlier steady state that is put before it.

    The step counts where it changed by more than 5 %, a part of it where that is more than 2 % of the step.
    """
    whole = table if baseline is None else side_by_side([baseline, table])
    steady = whole.of("step_time_s")[:, whole.steady]
    step_s = float(np.nanmedian(steady)) if np.isfinite(steady).any() else np.nan
    found: dict[str, Change] = {}
    for name in PARTS:
        if not whole.tells(name):
            continue
        of_step = name == "step_time_s"
        seen = change(
            series_of(whole, name),
            whole.steps,
            wanted_of(whole, name),
            effect=0.05 if of_step else 0.0,
            least=0.0 if of_step else _OF_STEP * step_s,
        )
        if seen is not None:
            found[name] = seen
    return found
