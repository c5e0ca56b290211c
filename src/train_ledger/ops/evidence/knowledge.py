"""What is known of each rank by the state of the run, for whoever asks why it hangs?"""

from __future__ import annotations

import signal
from collections.abc import Collection

from train_ledger.hang import RankKnowledge
from train_ledger.ledger import RankState, RunState
from train_ledger.ops.evidence.outside import raised_as_ended

__all__ = ["knowledge_of"]

_LOG_SLACK_S = 90.0
_LOG_LEAST_S = 10.0
_LOG_PACES = 4


def knowledge_of(
    state: RunState, aborted: Collection[int] = (), gave_up_t: float | None = None
) -> dict[int, RankKnowledge]:
    """What the state knows of each rank, in the words of the hang room; what is of all ranks is of none.

    `aborted` are ranks that cannot say so themselves: a signal of their own library ended them. Who raised
    after `gave_up_t` (unix seconds), when others had given up waiting, raised as it was ended.
    """
    as_ended = raised_as_ended(state)
    return {
        rank: RankKnowledge(
            rank=rank,
            host=it.host,
            step=it.step,
            phase=it.phase,
            gone=it.gone_t is not None,
            ended=it.ended,
            exception=None if _went_on(it, state) else it.exception,
            raised_as_ended=rank in as_ended or _is_after(it.raised_t, gave_up_t),
            signal=it.signal or (signal.SIGABRT if rank in aborted else None),
        )
        for rank, it in state.ranks.items()
        if not it.speaks_for_all
    }


def _is_after(t: float | None, end_t: float | None) -> bool:
    return t is not None and end_t is not None and t > end_t


def _went_on(rank: RankState, state: RunState) -> bool:
    """Whether a log tells of steps well after what it says that this rank raised."""
    if not state.by_logs or rank.raised_t is None or state.last_step_t is None:
        return False
    paces_s = _LOG_PACES * (state.p50_step_time_s or 0.0)
    slack_s = min(_LOG_SLACK_S, max(_LOG_LEAST_S, paces_s)) if paces_s else _LOG_SLACK_S
    return rank.raised_t < state.last_step_t - slack_s
