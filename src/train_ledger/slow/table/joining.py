"""How are tables of different steps put side by side?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from train_ledger.slow.table.step_table import Floats, Marks, StepTable

__all__ = ["side_by_side"]


def side_by_side(tables: Sequence[StepTable]) -> StepTable:
    """One table of the columns of all, in order, of the ranks of the last; ValueError where there is none.

    Where a table's steps do not lie behind those of the one before, as in another run, that is renumbered.
    """
    if not tables:
        raise ValueError("there is no table to put side by side")
    newest = tables[-1]
    names = {name for table in tables for name in table.values}
    rows = [_rows(table, newest) for table in tables]
    marks = [table.marks for table in tables]
    steps = newest.steps
    for table in reversed(tables[:-1]):
        behind = len(steps) and len(table.steps) and table.steps[-1] >= steps[0]
        older = steps[0] - len(table.steps) + np.arange(len(table.steps)) if behind else table.steps
        steps = np.concatenate((older, steps))
    return replace(
        newest,
        steps=steps,
        t=np.concatenate([_chosen(table.t, at) for table, at in zip(tables, rows, strict=True)], axis=1),
        values={
            name: np.concatenate(
                [_chosen(table.of(name), at) for table, at in zip(tables, rows, strict=True)], axis=1
            )
            for name in names
        },
        marks=Marks(
            np.concatenate([it.checkpoint for it in marks]),
            np.concatenate([it.evaluation for it in marks]),
            np.concatenate([it.restart for it in marks]),
            np.concatenate([it.warm_up for it in marks]),
            np.concatenate([it.gc for it in marks]),
        ),
        read_bytes=sum(table.read_bytes for table in tables),
    )


def _rows(table: StepTable, newest: StepTable) -> list[int | None]:
    """For each rank of the newest table its row in this one."""
    at = {rank: row for row, rank in enumerate(table.ranks)}
    return [at.get(rank) for rank in newest.ranks]


def _chosen(values: Floats, rows: Sequence[int | None]) -> Floats:
    untold = np.full(values.shape[1], np.nan)
    chosen = [untold if row is None else values[row] for row in rows]
    return np.array(chosen).reshape(len(rows), values.shape[1])
