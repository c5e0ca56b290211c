"""When did a run stand still, begin anew for nothing, compute nonsense or fail to save?

The rest of what can go wrong is read off what was said (`signs`). What is taken for an incident here, by the
thresholds that hold without any `--set`, so that it stays the same while thresholds are tried: the run stood
still past its limit and a minute longer (`stall`), its attempt ended and no other began in time
(`attempt_ended`), it was restarted again and again without passing a step (`restart_loop`, until it gets
further), its loss was not finite (`nonfinite_loss`), or a checkpoint was not saved (`save_failed`). An
attempt that ended and was followed by another at once is none: nobody has to be woken for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from train_ledger.config import Alerts
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.conditions import restarts_since
from train_ledger.ledger import RunState

__all__ = ["Happened"]

_STANDS = frozenset({"stalled", "escalated"})
_IN_LOOP = _STANDS | {"stopped", "starting", "restarting"}
_LASTED_S = 60.0


@dataclass(frozen=True, slots=True)
class _Standstill:
    t: float
    noticed_t: float
    kind: str
    has_to_last_s: float
    stood_t: float

    @property
    def lasted(self) -> bool:
        return self.stood_t - self.noticed_t >= self.has_to_last_s


class Happened:
    """Is shown a run's states, evaluation by evaluation (`see`), and says afterwards what happened."""

    def __init__(self, alerts: Alerts) -> None:
        self._alerts = alerts
        self._found: list[PastIncident] = []
        self._standstill: _Standstill | None = None
        self._moved_t: float | None = None
        self._attempt = 0
        self._ends: list[float] = []
        self._loop: PastIncident | None = None
        self._loops = False
        self._losses: set[tuple[int, int]] = set()
        self._saves = 0
        self._seen_t = 0.0

    def see(self, state: RunState) -> None:
        """The run as it was at its next evaluation."""
        self._seen_t = state.t
        self._note_attempt(state)
        self._note_restarts(state)
        self._note_standstill(state)
        self._note_losses(state)
        self._note_saves(state)

    def incidents(self) -> tuple[PastIncident, ...]:
        """What happened until now, by time."""
        here = self._standstill
        last = [_of(here, self._seen_t)] if here is not None and self._counts(here) else []
        return tuple(sorted([*self._found, *last], key=lambda it: it.t))

    def _note_attempt(self, state: RunState) -> None:
        if state.attempt != self._attempt:
            self._attempt = state.attempt
            if self._moved_t is not None:
                self._ends.append(self._moved_t)
        if state.last_step_t is not None:
            self._moved_t = max(state.last_step_t, self._moved_t or state.last_step_t)

    def _note_restarts(self, state: RunState) -> None:
        count, window_s = self._alerts.restart_loop_count, self._alerts.restart_loop_window_s
        if not state.finished and restarts_since(state, state.t - window_s) >= count:
            began_t = self._ends[-count:][0] if self._ends else state.attempts[0].started_t
            if self._loop is not None and began_t <= self._loop.until_t:
                self._found.remove(self._loop)
                began_t = self._loop.t
            self._loop_lasts(began_t, state.t)
        elif self._loop is not None and self._loops and state.state in _IN_LOOP:
            self._found.remove(self._loop)
            self._loop_lasts(self._loop.t, state.t)
        elif state.state in ("running", "finished"):
            self._loops = False

    def _loop_lasts(self, began_t: float, until_t: float) -> None:
        self._loop = PastIncident(began_t, "restart_loop", until_t)
        self._loops = True
        self._found.append(self._loop)

    def _counts(self, here: _Standstill) -> bool:
        """Whether it was long enough, and no part of a loop."""
        loop = self._loop
        return here.lasted and (loop is None or not loop.t <= here.t <= loop.until_t)

    def _note_standstill(self, state: RunState) -> None:
        here = self._standstill
        if state.state in _STANDS or _is_down(state):
            self._standstill = self._stands(state) if here is None else replace(here, stood_t=state.t)
        elif here is not None and state.state not in ("restarting", "starting"):
            self._standstill = None
            if self._counts(here):
                self._found.append(_of(here, state.t))

    def _stands(self, state: RunState) -> _Standstill:
        began_t = state.attempts[-1].started_t if state.attempts else state.t
        t = began_t if self._moved_t is None else self._moved_t
        if _is_down(state):
            patience_s = self._alerts.process_gone_s + _LASTED_S
            return _Standstill(t, state.t, "attempt_ended", patience_s, state.t)
        return _Standstill(t, state.t, "stall", _LASTED_S, state.t)

    def _note_losses(self, state: RunState) -> None:
        for rank in state.ranks.values():
            if rank.nonfinite_since_t is None or rank.nonfinite_since_step is None:
                continue
            stretch = (state.attempt, rank.nonfinite_since_step)
            until_t = (rank.nonfinite_t or rank.nonfinite_since_t) + self._alerts.loss_window_s
            if stretch not in self._losses:
                self._losses.add(stretch)
                self._add("nonfinite_loss", rank.nonfinite_since_t, until_t)

    def _note_saves(self, state: RunState) -> None:
        failed = state.checkpoints.failed
        for save in failed[self._saves :] if len(failed) > self._saves else ():
            until_t = save.t + self._alerts.checkpoint_window_s
            self._add("save_failed", save.t, until_t)
        self._saves = len(failed)

    def _add(self, kind: str, t: float, until_t: float) -> None:
        """Add an incident, or to one of its kind that was not over yet."""
        for place, earlier in enumerate(self._found):
            if earlier.kind == kind and earlier.t <= t <= earlier.until_t:
                self._found[place] = replace(earlier, until_t=max(until_t, earlier.until_t))
                return
        self._found.append(PastIncident(t, kind, until_t))


def _is_down(state: RunState) -> bool:
    """Whether no process is left, and not only one restart after the other fails."""
    return state.state == "stopped" and all(
        rank.gone_t is not None or rank.exception is not None or rank.signal is not None
        for rank in state.ranks.values()
    )


def _of(standstill: _Standstill, until_t: float) -> PastIncident:
    return PastIncident(standstill.t, standstill.kind, until_t)
