"""What table do facts make that are in memory already, as those of logs?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from train_ledger.facts import Event, Fact, Step
from train_ledger.slow.table.assembly import table_of_rows
from train_ledger.slow.table.layout import layout_of
from train_ledger.slow.table.reading import NEWEST_STEPS
from train_ledger.slow.table.rows import RankRows, is_wanted, joined, stood_before
from train_ledger.slow.table.step_table import StepTable

__all__ = ["table_of_facts"]


def table_of_facts(
    facts: Iterable[Fact], run: Mapping[str, Any] | None = None, steps: int = NEWEST_STEPS
) -> StepTable:
    """The table of the newest steps that these facts tell; of each rank they are in its order.

    `run` is the content of run.json. Steps of a log that names no rank are those of the rank that writes it
    for all, rank 0; where no rank is named at all they make a table of one row, `of_all`.
    """
    by_rank: dict[int | None, list[Step | Event]] = {}
    for fact in facts:
        if isinstance(fact, Step | Event):
            by_rank.setdefault(fact.rank, []).append(fact)
    told = {rank: _rows(rank, of_rank) for rank, of_rank in by_rank.items() if rank is not None}
    of_all = not any(map(len, told.values())) and None in by_rank
    if of_all:
        told = {}
    if None in by_rank:
        for_all = _rows(0, by_rank[None])
        told[0] = _merged(for_all, told[0]) if 0 in told else for_all
    identities = {rank: rows.identity for rank, rows in told.items()}
    return table_of_rows(list(told.values()), layout_of(run or {}, identities), steps, of_all=of_all)


def _merged(first: RankRows, second: RankRows) -> RankRows:
    """What two logs tell of one rank, by steps; the second one's values count where both tell one."""
    both = joined(first, second)
    order = np.lexsort((np.arange(len(both)), both.step, both.attempt))
    return replace(
        both,
        attempt=both.attempt[order],
        step=both.step[order],
        t=both.t[order],
        values={name: told[order] for name, told in both.values.items()},
        stood=both.stood[order],
        from_start=True,
    )


def _rows(rank: int, told: list[Step | Event]) -> RankRows:
    steps: list[Step] = []
    stood: list[int] = []
    identity: dict[str, Any] = {}
    flags = 0
    for fact in told:
        if isinstance(fact, Event):
            flags |= stood_before(fact.name, fact.details.get("phase"))
            if fact.name == "run_start":
                identity = dict(fact.details)
            continue
        if fact.host is not None:
            identity["host"] = fact.host
        steps.append(fact)
        stood.append(flags)
        flags = 0
    names = {name for step in steps for name in step.values if is_wanted(name)}
    return RankRows(
        rank,
        np.array([step.attempt for step in steps], dtype=np.int64),
        np.array([step.step for step in steps], dtype=np.int64),
        np.array([step.t for step in steps], dtype=np.float64),
        {
            name: np.array([step.values.get(name, np.nan) for step in steps], dtype=np.float64)
            for name in names
        },
        np.array(stood, dtype=np.int64),
        identity,
        from_start=True,
    )
