"""Who waits for this rank?

By the last verdict of the run's keeper, who has read all dumps, where it is of the place at which the run
stands now; else by what the ranks' own lines show: others that have gone further while it has not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from train_ledger.ledger import JournalError, RankState, RunState, journal
from train_ledger.ops.journal_values import moment
from train_ledger.ops.rank.records import Waiting
from train_ledger.run_dir import RunDir

__all__ = ["waiting_for"]

_JOURNAL_BYTES = 64 << 20
_COMMUNICATING = ("forward", "backward", "optimizer")


def waiting_for(run_dir: RunDir, state: RunState, rank: int, at: float | None) -> Waiting | None:
    """The ranks, and by what that is known; None where nothing shows it."""
    if state.state == "finished":
        return None
    return _by_verdict(run_dir, state, rank, at) or _by_lines(state, rank)


def _by_verdict(run_dir: RunDir, state: RunState, rank: int, at: float | None) -> Waiting | None:
    for entry in reversed(_entries(run_dir)):
        t = moment(entry.get("t"))
        if entry.get("kind") != "verdict" or t is None or (at is not None and t > at):
            continue
        if entry.get("place") != [state.attempt, state.step]:
            return None  # of where the run stood before
        ranks = _victims(entry.get("diagnosis"), rank)
        said = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(t))
        return Waiting(ranks, f"the keeper's verdict of {said}, by the dumps") if ranks else None
    return None


def _entries(run_dir: RunDir) -> list[dict[str, Any]]:
    try:
        if run_dir.journal.stat().st_size > _JOURNAL_BYTES:
            return []
        return journal.read(run_dir.journal).entries
    except (OSError, JournalError):
        return []


def _victims(diagnosis: object, rank: int) -> tuple[int, ...]:
    details = diagnosis.get("details") if isinstance(diagnosis, Mapping) else None
    of = details.get("victims_of") if isinstance(details, Mapping) else None
    told = of.get(str(rank)) if isinstance(of, Mapping) else None
    return tuple(it for it in told if type(it) is int) if isinstance(told, list) else ()


def _by_lines(state: RunState, rank: int) -> Waiting | None:
    """Only while the run stands, and only where most others have gone further than this one."""
    own = state.ranks.get(rank)
    if own is None or own.speaks_for_all or state.stalled_for_s <= state.stall_threshold_s:
        return None
    further = tuple(
        sorted(it.rank for it in state.ranks.values() if it.rank != rank and _is_further(it, own))
    )
    if 2 * len(further) <= len(state.ranks):
        return None
    how = (
        "completed a later step" if _is_behind(own, state) else "are in a phase with collectives of this step"
    )
    return Waiting(further, f"their own lines: they {how}")


def _is_behind(own: RankState, state: RunState) -> bool:
    return own.step is not None and state.step is not None and own.step < state.step


def _is_further(other: RankState, own: RankState) -> bool:
    if own.step is None or other.step is None:
        return False
    if other.step != own.step:
        return other.step > own.step
    return other.phase in _COMMUNICATING and (_has_fallen(own) or own.phase not in (None, *_COMMUNICATING))


def _has_fallen(own: RankState) -> bool:
    return own.gone_t is not None or own.exception is not None or own.ended
