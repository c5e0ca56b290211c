"""How do the rows of single ranks become one table?

Ranks are laid side by side by the numbers of their steps. Where an attempt began, or the step went back,
another table begins; that before the newest one is kept as the earlier state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from train_ledger.ledger.pace import LONGEST_STEP_S
from train_ledger.slow.table.layout import Layout
from train_ledger.slow.table.rows import CHECKPOINT, EVALUATION, RESTART, RankRows
from train_ledger.slow.table.step_table import Flags, Floats, Ints, Marks, StepTable

__all__ = ["table_of_rows"]

_WARM_UP_STEPS = 3
_STAYS_BACK = 3
_GC_SHARE = 0.05
_MOST_SAVES_IN_A_ROW = 3


def table_of_rows(told: Sequence[RankRows], layout: Layout, most: int, *, of_all: bool = False) -> StepTable:
    """The table of the newest attempt's last `most` steps, with the end of the one before as `earlier`."""
    stretches = {rows.rank: _stretches(rows) for rows in told if len(rows)}
    newest = max((int(parts[-1].attempt[-1]) for parts in stretches.values()), default=0)
    now = [parts.pop() for parts in stretches.values() if parts[-1].attempt[-1] == newest]
    before = [parts[-1] for parts in stretches.values() if parts]
    latest = max((int(it.attempt[-1]) for it in before), default=0)
    before = [it for it in before if it.attempt[-1] == latest]
    damaged = sum((Counter(rows.damaged) for rows in told), Counter[str]())
    earlier = _table(before, layout, most, of_all, Counter()) if before else None
    return _table(now, layout, most, of_all, damaged, earlier)


def _stretches(rows: RankRows) -> list[RankRows]:
    """The rows cut where an attempt began or the step went back for good."""
    highest = np.maximum.accumulate(rows.step)
    back = np.zeros(len(rows), dtype=bool)
    back[1:] = rows.step[1:] < highest[:-1]
    stays = back.copy()
    for ahead in range(1, _STAYS_BACK):  # a single older number is a late line of that step
        stays[:-ahead] &= rows.step[ahead:] < highest[:-ahead]
        stays[-ahead:] = False
    first = np.zeros(len(rows), dtype=bool)
    first[1:] = stays[1:] & ~stays[:-1]
    begins = np.flatnonzero((np.diff(rows.attempt, prepend=rows.attempt[:1]) > 0) | first)
    edges = [0, *begins.tolist(), len(rows)]
    parts = []
    for number, (low, high) in enumerate(pairwise(edges)):
        part = rows.of(slice(low, high))
        if len(part):
            if number or rows.from_start:
                part.stood[0] |= RESTART
            parts.append(part)
    return parts


def _table(
    told: Sequence[RankRows],
    layout: Layout,
    most: int,
    of_all: bool,
    damaged: Counter[str],
    earlier: StepTable | None = None,
) -> StepTable:
    ordered = sorted(told, key=lambda rows: rows.rank)
    steps = _steps(ordered, most)
    columns = [np.searchsorted(steps, rows.step) for rows in ordered]
    kept = [_is_in(steps, rows.step, at) for rows, at in zip(ordered, columns, strict=True)]
    shape = (len(ordered), len(steps))
    t = np.full(shape, np.nan)
    stood = np.zeros(len(steps), dtype=np.int64)
    odd: Counter[str] = Counter()
    names = sorted({name for rows in ordered for name in rows.values})
    values = {name: np.full(shape, np.nan) for name in names}
    for row, (rows, at, good) in enumerate(zip(ordered, columns, kept, strict=True)):
        t[row, at[good]] = rows.t[good]
        np.bitwise_or.at(stood, at[good], rows.stood[good])
        for name, told_values in rows.values.items():
            is_told = good & ~np.isnan(told_values)
            values[name][row, at[is_told]] = told_values[is_told]
    for name in names:
        odd.update(_without_odd(name, values[name]))
    if "step_time_s" not in values or not np.isfinite(values["step_time_s"]).any():
        values["step_time_s"] = _from_step_to_step(steps, t)
    _add_tokens(values)
    return StepTable(
        layout.places([rows.rank for rows in ordered]),
        int(ordered[0].attempt[-1]) if ordered else 0,
        steps,
        t,
        values,
        _marks(stood, values),
        layout_told=layout.is_told,
        of_all=of_all,
        earlier=earlier,
        world_size=layout.world_size,
        odd=+odd,
        damaged=damaged,
    )


def _steps(told: Sequence[RankRows], most: int) -> Ints:
    """The numbers of the newest steps that any rank told."""
    if not told:
        return np.zeros(0, dtype=np.int64)
    return np.unique(np.concatenate([rows.step[-2 * most :] for rows in told]))[-most:]


def _is_in(steps: Ints, told: Ints, at: Ints) -> Flags:
    found: Flags = (at < len(steps)) & (steps[np.minimum(at, len(steps) - 1)] == told)
    return found


def _without_odd(name: str, values: Floats) -> Counter[str]:
    """Takes out what no such value can be, and counts it."""
    with np.errstate(invalid="ignore"):
        odd = np.isinf(values) | (values < 0)
        if name.endswith("_s"):
            odd |= values >= LONGEST_STEP_S
    values[odd] = np.nan
    return Counter({name: int(odd.sum())})


def _from_step_to_step(steps: Ints, t: Floats) -> Floats:
    """How long a step took by the times of the rank's lines, shared over the steps between two of them."""
    took = np.full(t.shape, np.nan)
    for row in range(len(t)):
        told = np.flatnonzero(np.isfinite(t[row]))
        if len(told) > 1:
            took[row, told[1:]] = np.diff(t[row, told]) / np.diff(steps[told])
    took[~(took > 0)] = np.nan
    return took


def _add_tokens(values: dict[str, Floats]) -> None:
    """A rank's tokens of a step, up to a factor that is the same on all ranks, by its tokens per second."""
    if "tokens" not in values and "tps" in values:
        values["tokens"] = values["tps"] * values["step_time_s"]


def _marks(stood: Ints, values: dict[str, Floats]) -> Marks:
    restart = (stood & RESTART) > 0
    warm_up = restart.copy()
    for later in range(1, _WARM_UP_STEPS):
        warm_up[later:] |= restart[:-later]
    saves = _few_in_a_row(_any_above(values.get("ckpt_s"), 0.0, len(stood)))
    checkpoint = ((stood & CHECKPOINT) > 0) | saves
    collects = _any_above(values.get("gc_s"), _GC_SHARE * values["step_time_s"], len(stood))
    return Marks(checkpoint, (stood & EVALUATION) > 0, restart, warm_up, collects)


def _few_in_a_row(flags: Flags) -> Flags:
    """Without the longer rows of flags: what every step does is no exception among them."""
    found = flags.copy()
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    for low, high in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if high - low > _MOST_SAVES_IN_A_ROW:
            found[low:high] = False
    return found


def _any_above(told: Floats | None, limit: Floats | float, steps: int) -> Flags:
    """In which steps any rank told more."""
    if told is None:
        return np.zeros(steps, dtype=np.bool_)
    return np.asarray((told > limit).any(axis=0))
