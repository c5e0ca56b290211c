"""In which of its states is the run?

The states are one table: each row says when a state holds and since when, and the first row that holds wins.
So the state follows from what is known alone, whichever way the run came to it; which ways there are says
`transitions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from train_ledger.config import Alerts
from train_ledger.ledger.attempts import failed_restarts, reached_before
from train_ledger.ledger.hardware.faulty import gpu_trouble_t
from train_ledger.ledger.state import RankState, RunState

__all__ = ["ORDER", "with_state"]

_HEALTHY_STEPS = 100
"""A numeric fault is over after so many steps without another."""

_FATAL_SIGNALS = frozenset({1, 2, 3, 6, 9, 11, 15})

Since = Callable[[RunState, Alerts], float | None]


def with_state(run: RunState, alerts: Alerts) -> RunState:
    """The same run with `state`, `since_t` and `finished` filled in."""
    for name, since in _STATES:
        since_t = since(run, alerts)
        if since_t is not None:
            return replace(run, state=name, since_t=since_t, finished=name == "finished")
    return replace(run, state="starting", since_t=None, finished=False)


def _down(rank: RankState) -> bool:
    """Its process is gone, or has said that it is about to be."""
    return rank.gone_t is not None or rank.exception is not None or rank.signal in _FATAL_SIGNALS


def _all_down(run: RunState) -> bool:
    ranks = run.ranks.values()
    return len(ranks) >= (run.world_size or 1) and all(map(_down, ranks)) and not _finished_ranks(run)


def _finished_ranks(run: RunState) -> list[RankState]:
    return [rank for rank in run.ranks.values() if rank.ended and not _raised(rank)]


def _raised(rank: RankState) -> bool:
    return rank.exception is not None or rank.signal in _FATAL_SIGNALS


def _newest(ranks: list[RankState]) -> float:
    return max(rank.heard_t or rank.gone_t or 0.0 for rank in ranks)


def _finished(run: RunState, _: Alerts) -> float | None:
    """Every rank said run_end; or most did, and the processes of the others are gone without an error.

    What is said for all of them is said by all. Who follows the ranks of some hosts says it of these.
    """
    ended = _finished_ranks(run)
    if any(rank.speaks_for_all for rank in ended):
        return None if any(map(_raised, run.ranks.values())) else _newest(ended)
    of_others = 0 if run.is_part else run.world_size or 0
    if len(ended) * 2 <= max(len(run.ranks), of_others):
        return None
    others = [rank for rank in run.ranks.values() if not rank.ended or _raised(rank)]
    over = all(rank.gone_t is not None and not _raised(rank) for rank in others)
    return _newest(ended) if over else None


def _stopped(run: RunState, alerts: Alerts) -> float | None:
    """No process is left, or so many restarts in a row did not pass the step once reached.

    The second holds until an attempt passes it, also while a launcher goes on to restart.
    """
    down = _all_down(run)
    if down and run.ranks:
        return _newest(list(run.ranks.values()))
    if failed_restarts(run.attempts, current_is_down=False) >= alerts.restart_loop_count and not _passed(run):
        return run.attempts[-1].started_t
    return None


def _passed(run: RunState) -> bool:
    reached = reached_before(run.attempts, run.attempt)
    return run.step is not None and (reached is None or run.step > reached)


def _stands(run: RunState) -> bool:
    return bool(run.attempts) and run.stalled_for_s > run.stall_threshold_s


def _stood_since(run: RunState) -> float:
    return run.attempts[-1].started_t if run.last_step_t is None else run.last_step_t


def _escalated(run: RunState, alerts: Alerts) -> float | None:
    if not _stands(run) or run.attempt == 0:
        return None
    since_t = _stood_since(run)
    return since_t if since_t - run.attempts[-1].started_t <= alerts.restart_loop_window_s else None


def _stalled(run: RunState, _: Alerts) -> float | None:
    return _stood_since(run) if _stands(run) else None


def _numeric_fault(run: RunState, _: Alerts) -> float | None:
    faulty = [
        rank.nonfinite_since_t
        for rank in run.ranks.values()
        if rank.nonfinite_step is not None
        and rank.nonfinite_since_t is not None
        and (run.step is None or run.step - rank.nonfinite_step < _HEALTHY_STEPS)
    ]
    return min(faulty, default=None)


def _hardware_fault(run: RunState, alerts: Alerts) -> float | None:
    """A GPU of the run failed in this attempt, and steps go on; where they do not, it has become a stall."""
    return gpu_trouble_t(run, alerts)


def _restarting(run: RunState, _: Alerts) -> float | None:
    return run.attempts[-1].started_t if run.attempts and run.attempt > 0 and run.step is None else None


def _starting(run: RunState, _: Alerts) -> float | None:
    return run.attempts[-1].started_t if run.attempts and run.step is None else None


def _recovering(run: RunState, _: Alerts) -> float | None:
    return run.attempts[-1].first_step_t if run.attempt > 0 and not _passed(run) else None


def _running(run: RunState, _: Alerts) -> float | None:
    return run.attempts[-1].first_step_t if run.attempts else None


_STATES: tuple[tuple[str, Since], ...] = (
    ("finished", _finished),
    ("stopped", _stopped),
    ("escalated", _escalated),
    ("stalled", _stalled),
    ("numeric_fault", _numeric_fault),
    ("restarting", _restarting),
    ("starting", _starting),
    ("hardware_fault", _hardware_fault),
    ("recovering", _recovering),
    ("running", _running),
)

ORDER = tuple(name for name, _ in _STATES)
"""The states in the order in which they are looked for."""
