"""In which phases is one rank, and how long do they usually last?

Events that say the same of a phase (`eval_start` and `phase_start evaluation`) are taken once.
"""

from __future__ import annotations

from collections import deque
from statistics import median

from train_ledger.facts import Event

__all__ = ["RAISING_PHASES", "PhaseFold"]

RAISING_PHASES = frozenset({"start_up", "compile", "checkpoint_save", "checkpoint_load", "evaluation"})
"""Phases in which no step is expected for long."""

_OPENS = {"ckpt_start": "checkpoint_save", "eval_start": "evaluation"}
_CLOSES = {"ckpt_saved": "checkpoint_save", "ckpt_failed": "checkpoint_save", "eval_end": "evaluation"}
_WINDOW = 20


class PhaseFold:
    """The phases of one rank since its last completed step.

    `open` maps each open phase to its begin, innermost last. `excused_t` is when the last of those that raise
    the limit ended, `paused` whether there was one since the last step at all. What is still open when a step
    completes is not what the next one waits for (its end was lost, or it runs beside the training).
    `unannounced_s` is how long evaluations usually take of which only the end is told, 0 where there are
    none: one may be under way at any time.
    """

    __slots__ = ("_durations_s", "_unannounced_s", "excused_t", "open", "paused")

    def __init__(self) -> None:
        self._durations_s: dict[str, deque[float]] = {}
        self._unannounced_s: deque[float] = deque(maxlen=_WINDOW)
        self.begin_attempt()

    def begin_attempt(self) -> None:
        """Forget what is open; how long phases usually last is kept."""
        self.open: dict[str, float] = {}
        self.excused_t: float | None = None
        self.paused = False

    def step_completed(self) -> None:
        if self.open:
            self.open = {}
        self.excused_t = None
        self.paused = False

    @property
    def innermost(self) -> str | None:
        return next(reversed(self.open), None)

    def usual_s(self, phase: str) -> float:
        """The median duration of this phase so far; 0 where it never ended."""
        durations = self._durations_s.get(phase)
        return median(durations) if durations else 0.0

    @property
    def unannounced_s(self) -> float:
        return median(self._unannounced_s) if self._unannounced_s else 0.0

    def add(self, event: Event, t: float, step_t: float | None = None) -> None:
        """Fold an event that begins or ends a phase; any other says nothing here.

        `step_t` is when the last step was completed.
        """
        if event.name == "eval_end" and "evaluation" not in self.open and step_t is not None:
            self._unannounced_s.append(max(0.0, t - step_t))
            self.paused, self.excused_t = True, t
        if event.name == "phase_start" or event.name in _OPENS:
            self._begin(_OPENS.get(event.name) or event.details.get("phase"), t)
        elif event.name == "phase_end" or event.name in _CLOSES:
            self._end(_CLOSES.get(event.name) or event.details.get("phase"), t)

    def _begin(self, phase: object, t: float) -> None:
        if isinstance(phase, str) and phase not in self.open:
            self.open[phase] = t
            self.paused = self.paused or phase in RAISING_PHASES

    def _end(self, phase: object, t: float) -> None:
        if not isinstance(phase, str):
            return
        since_t = self.open.pop(phase, None)
        if since_t is None or phase not in RAISING_PHASES:
            return
        self.excused_t = t
        self._durations_s.setdefault(phase, deque(maxlen=_WINDOW)).append(max(0.0, t - since_t))
