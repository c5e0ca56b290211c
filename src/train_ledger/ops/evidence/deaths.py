"""Was none of the ranks seen dead, or did nobody look?

A process table tells of the ranks of its own host alone, and of those that said which process they are.
"""

from __future__ import annotations

import socket
from collections.abc import Collection
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]

from train_ledger.answer import RuledOut
from train_ledger.ledger import RankState, RunState
from train_ledger.ops.evidence.outside import FROM_OUTSIDE
from train_ledger.render import ranks_in_brief

__all__ = ["Deaths", "deaths_of", "ranks_here"]

_NOBODY = "processes: whether each still lives can be seen on its own host alone, and while it is watched"


class Deaths(NamedTuple):
    """What is excluded of deaths, and what nobody saw of them."""

    ruled_out: tuple[RuledOut, ...] = ()
    not_observed: tuple[str, ...] = ()


def ranks_here(state: RunState) -> tuple[int, ...]:
    """The ranks whose processes can be looked at here: of this host, and with their number.

    None where none of these numbers is a process: the ranks may count theirs in a container of their own.
    """
    here = socket.gethostname()
    ours = [it for it in state.ranks.values() if it.host == here and it.pid is not None]
    some = any(it.gone_t is not None or psutil.pid_exists(it.pid) for it in ours)
    return tuple(it.rank for it in ours) if some else ()


def deaths_of(state: RunState, looked_at: Collection[int]) -> Deaths:
    """That no rank died is excluded only where all of the run's were looked at and none had an end."""
    unseen = sorted({*range(state.world_size or 0), *state.ranks}.difference(looked_at))
    if not looked_at:
        return Deaths(not_observed=(_NOBODY,))
    if unseen:
        why = "of other hosts, or without a process of their own that is known"
        return Deaths(not_observed=(f"processes of {ranks_in_brief(unseen)}: {why}",))
    if any(map(_has_ended, state.ranks.values())):
        return Deaths()
    by = f"no process of the {len(state.ranks)} ranks was seen dead, none raised"
    return Deaths(ruled_out=(RuledOut("hang.rank_died", by),))


def _has_ended(rank: RankState) -> bool:
    return rank.gone_t is not None or rank.exception is not None or rank.signal in FROM_OUTSIDE
