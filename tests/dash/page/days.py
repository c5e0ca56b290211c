"""Days of a run in simulated time, told as fast as somebody asks."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dash.page.views import diagnosis, incident, stall
from dash.states import T0, running
from train_ledger.answer import to_json
from train_ledger.dash.page import PageView
from train_ledger.facts import Event, HardwareReading, Step
from train_ledger.ledger import Attempt
from train_ledger.ledger.history import History

__all__ = ["Days"]

_STEP_S = 5.0
_LOOK_S = 300.0
_HANGS_EVERY, _HANGS_FOR = 24, 4
_LAST_RESTART = 4 * _HANGS_EVERY


class Days:
    """Each `look()` is five minutes later, up to the look `until`.

    In it all ranks do 60 steps, or a part of a hang passes. The run hangs every two hours for twenty minutes;
    the first four hangs end in a restart, the others by themselves, so that the second day has no more
    attempts to draw than the first.
    """

    A_DAY = 288

    def __init__(self, ranks: int = 8) -> None:
        self.looks = 0
        self.until = 0
        self.progress = None
        self._ranks = ranks
        self._lock = threading.Lock()
        self._history = History()
        self._journal: deque[Mapping[str, Any]] = deque(maxlen=200)
        self._attempts: list[Attempt] = []
        self._step = 0
        self._last_step_t = T0
        self._start(T0)
        self._view = self._seen(running(t=T0, ranks=ranks, step=0))

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[History]:
        with self._lock:
            yield self._history

    def look(self) -> PageView:
        """The run as its keeper would show it."""
        with self._lock:
            if self.looks < self.until:
                self.looks += 1
                self._view = self._next(T0 + _LOOK_S * self.looks)
            return self._view

    def _next(self, t: float) -> PageView:
        place = self.looks % _HANGS_EVERY
        if place >= _HANGS_EVERY - _HANGS_FOR:
            return self._hung(t, begins=place == _HANGS_EVERY - _HANGS_FOR)
        if place == 0:
            self._recover(t)
        self._train(t)
        return self._seen(running(t=t, ranks=self._ranks, step=self._step, last_step_t=t - 1))

    def _train(self, t: float) -> None:
        attempt, first = len(self._attempts) - 1, self._step + 1
        self._step += int(_LOOK_S / _STEP_S)
        self._last_step_t = t - 1
        for rank in range(self._ranks):
            for step in range(first, self._step + 1):
                at = t - _STEP_S * (self._step - step)
                self._history.add(Step(at, step, rank, attempt, "node1", values=_figures(step, rank)))
        for gpu in range(self._ranks):
            told = {"DCGM_FI_DEV_SM_CLOCK": 1980.0 - gpu, "DCGM_FI_DEV_GPU_TEMP": 60.0 + self.looks % 7}
            self._history.add_hardware(HardwareReading(t, "node1", gpu=gpu, values=told))
        self._history.add(Event(t, "ckpt_saved", 0, step=self._step, attempt=attempt))
        self._attempts[-1] = replace(self._attempts[-1], last_step=self._step)

    def _hung(self, t: float, *, begins: bool) -> PageView:
        culprit = self.looks % self._ranks
        found = diagnosis(self._ranks, culprit)
        if begins:
            self._note(t, "state_changed", state="stalled", before="running", step=self._step)
            self._note(t, "alert_fired", alert="TrainingStepStalled", level="page", summary=stall().summary)
            self._note(t, "incident_opened", incident=incident().id)
            self._note(t, "verdict", incident=incident().id, diagnosis=to_json(found))
            self._note(t, "notification_done", incident=incident().id, outcome="delivered")
        told = {"state": "stalled", "since_t": self._last_step_t + 90}
        state = running(t=t, ranks=self._ranks, step=self._step, last_step_t=self._last_step_t, **told)
        return self._seen(state, alerts=(stall(),), incidents=(incident(),), diagnosis=found)

    def _recover(self, t: float) -> None:
        self._note(t, "alert_resolved", alert="TrainingStepStalled", level="page")
        self._note(t, "incident_closed", incident=incident().id)
        self._note(t, "state_changed", state="running", before="stalled", step=self._step)
        if self.looks <= _LAST_RESTART:
            self._step = max(0, self._step - 60)
            self._start(t)

    def _start(self, t: float) -> None:
        self._attempts.append(Attempt(len(self._attempts), t, first_step=self._step + 1, first_step_t=t))
        for rank in range(self._ranks):
            self._history.add(Event(t, "run_start", rank, attempt=len(self._attempts) - 1, host="node1"))

    def _note(self, t: float, kind: str, **details: Any) -> None:
        self._journal.append({"t": t, "kind": kind, **details})

    def _seen(self, state: Any, **others: Any) -> PageView:
        attempt = len(self._attempts) - 1
        shown = replace(state, attempt=attempt, attempts=tuple(self._attempts))
        return PageView(shown, journal=tuple(self._journal), **others)


def _figures(step: int, rank: int) -> dict[str, float]:
    wave = math.sin(step / 50 + rank)
    return {
        "loss": 2.0 + 3.0 / (1 + step / 500) + 0.02 * wave,
        "grad_norm": 1.0 + 0.1 * wave,
        "lr": 3e-4,
        "step_time_s": _STEP_S,
        "compute_s": 4.0 + 0.1 * wave + (0.3 if rank == 5 else 0.0),
        "comm_wait_s": 0.5 - 0.1 * wave,
        "data_wait_s": 0.01,
        "tps": 12_000.0 + 100 * wave,
        "mfu": 41.0 + wave,
        "mem_reserved_peak": 7e10,
        "rss_bytes": 9e9 + 1e6 * (step % 100),
    }
