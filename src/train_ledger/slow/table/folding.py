"""What table do facts make that are in memory already, as those of logs?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from train_ledger.facts import Event, Fact, Step
from train_ledger.slow.table.assembly import table_of_rows
from train_ledger.slow.table.layout import layout_of
from train_ledger.slow.table.reading import NEWEST_STEPS
from train_ledger.slow.table.rows import RankRows, is_wanted, stood_before
from train_ledger.slow.table.step_table import StepTable

__all__ = ["table_of_facts"]


def table_of_facts(
    facts: Iterable[Fact], run: Mapping[str, Any] | None = None, steps: int = NEWEST_STEPS
) -> StepTable:
    """The table of the newest steps that these facts tell; of each rank they are in its order.

    `run` is the content of run.json. Steps of a log that names no rank make a table of one row, `of_all`,
    where no rank tells any.
    """
    by_rank: dict[int | None, list[Step | Event]] = {}
    for fact in facts:
        if isinstance(fact, Step | Event):
            by_rank.setdefault(fact.rank, []).append(fact)
    told = [_rows(rank, of_rank) for rank, of_rank in by_rank.items() if rank is not None]
    of_all = not any(map(len, told)) and None in by_rank
    if of_all:
        told = [_rows(0, by_rank[None])]
    identities = {rows.rank: rows.identity for rows in told}
    return table_of_rows(told, layout_of(run or {}, identities), steps, of_all=of_all)


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
