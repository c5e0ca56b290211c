"""How did a run become slow, step by step, as a picture?

The steps around the change: how long each took, and how long the ranks that drag worked themselves beside
their peers. A page draws it; the verdict does not rest on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from train_ledger.answer import Diagnosis, SlowAnswer
from train_ledger.config import Config
from train_ledger.ops.observing import observe
from train_ledger.ops.slow.history import history_of
from train_ledger.render import Picture, ranks_in_brief
from train_ledger.render.curve import Band, Curve, Line, Look
from train_ledger.run_dir import RunDir
from train_ledger.slow import NEWEST, History
from train_ledger.slow.peers.work import own_work
from train_ledger.slow.suspects.view import over_ranks
from train_ledger.slow.table import StepTable
from train_ledger.slow.table.step_table import Flags, Floats

__all__ = ["curves_at", "picture_at"]

_BEHIND = 100
"""Steps behind a change that lies farther back than the newest ones, which are shown with those before it."""
_LOOKS: tuple[Look, ...] = ("culprit", "second", "third")


def picture_at(run_dir: RunDir, config: Config, found: Diagnosis, at: float | None = None) -> Picture | None:
    """What is drawn beside an answer about how long steps take; None beside others. Raises as `look_at`."""
    if not isinstance(found.details, SlowAnswer):
        return None
    return Picture(curves=curves_at(run_dir, config, found.details, at))


def curves_at(
    run_dir: RunDir, config: Config, answer: SlowAnswer, at: float | None = None
) -> tuple[Curve, ...]:
    """The time of each step, and own work beside the peers', as known at `at` (unix s; None: now).

    Each where the ranks tell it. Raises as `look_at`.
    """
    state, _ = observe(run_dir, config, at)
    table = _around(history_of(run_dir, run_dir.read_run(), state, at), answer.since_step)
    if len(table.steps) < 2:
        return ()
    return tuple(_curves(table, answer))


def _around(history: History, since_step: int | None) -> StepTable:
    newest = history.newest(NEWEST)
    if since_step is None or not len(newest.steps) or since_step > int(newest.steps[0]):
        return newest
    before = history.until(newest.attempt, since_step + _BEHIND, NEWEST)
    return before if len(before.steps) > 1 else newest


def _curves(table: StepTable, answer: SlowAnswer) -> Iterator[Curve]:
    places = tuple(int(step) for step in table.steps)
    mark: dict[str, Any] = {}
    if answer.since_step is not None:
        mark = {"mark": answer.since_step, "mark_text": f"slower since step {answer.since_step:,}"}
    taken = over_ranks(np.nanmedian, table.of("step_time_s"))
    if np.isfinite(taken).any():
        yield Curve("how long each step took", places, (Line("step", _plain(taken)),), **mark)
    lines, band = _work(table, answer.culprits)
    if lines:
        title = "own work in each step, without waiting for other ranks"
        yield Curve(title, places, tuple(lines), band=band, **mark)


def _work(table: StepTable, culprits: Sequence[int]) -> tuple[list[Line], Band | None]:
    """Lines of the ranks that drag and of the median of their peers, who are all between the band's edges."""
    work = own_work(table)
    if work is None or work.by == "parts" or table.of_all or len(table.ranks) < 2:
        return [], None
    named = [rank for rank in culprits if rank in table.ranks]
    peers = _peers(table, named)
    lines = [
        Line(f"rank {rank}", _plain(work.seconds[table.ranks.index(rank)]), look)
        for rank, look in zip(named, _LOOKS, strict=False)
    ]
    if not peers.any():
        return lines, None
    seconds = work.seconds[peers]
    who = ranks_in_brief(
        [rank for rank, is_peer in zip(table.ranks, peers, strict=True) if is_peer], longest=40
    )
    lines.append(Line(f"median of {who}", _plain(over_ranks(np.nanmedian, seconds)), "peers"))
    edges = (_plain(over_ranks(figure, seconds)) for figure in (np.nanmin, np.nanmax))
    return lines, Band("from the least of them to the largest", *edges)


def _peers(table: StepTable, named: Sequence[int]) -> Flags:
    """The other ranks of the stages that drag; all of them where nobody does."""
    stages = {stage for rank, stage in zip(table.ranks, table.stages, strict=True) if rank in named}
    return np.array(
        [
            rank not in named and (not named or stage in stages)
            for rank, stage in zip(table.ranks, table.stages, strict=True)
        ]
    )


def _plain(series: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in np.round(series, 6))
