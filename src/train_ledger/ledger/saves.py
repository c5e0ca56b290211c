"""Which checkpoints were saved, and which were not?

A save that several ranks report is one save. What counts is what its lowest rank says of the time, and the
longest duration that any of them says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from train_ledger.facts import Event
from train_ledger.fields import read_number
from train_ledger.ledger.state import Checkpoints, FailedSave

__all__ = ["SAVE_EVENTS", "Saves"]

SAVE_EVENTS = frozenset({"ckpt_start", "ckpt_saved", "ckpt_failed"})

_SHOWN = 20
_KEPT = 256
_LONGEST_S = 7 * 86_400.0
"""No save takes a week: a figure that says so would be no usual duration to go by."""

Times = Callable[[int, float], float]
"""Moves a rank's time onto rank 0's clock."""


@dataclass(slots=True)
class _Report:
    rank: int
    t: float
    error: str = ""


@dataclass(slots=True)
class _Save:
    started: _Report | None = None
    done: _Report | None = None
    failed: _Report | None = None
    duration_s: float | None = None

    @property
    def succeeded(self) -> bool:
        """A save that failed on any rank is none, unless it was tried again and done later."""
        return self.done is not None and (self.failed is None or self.done.t > self.failed.t)


class Saves:
    """Folds checkpoint events, keyed by attempt and step; the newest few hundred are kept."""

    def __init__(self) -> None:
        self._saves: dict[tuple[int, int], _Save] = {}
        self._failed_before = 0

    def add(self, event: Event, rank: int, t: float, step: int | None) -> None:
        """`t` is the event's carried time, `step` that of its `rank` where the event names none."""
        wanted = event.step if event.step is not None else step
        key = (event.attempt, -1 if wanted is None else wanted)
        save = self._saves.setdefault(key, _Save())
        if event.name == "ckpt_start":
            save.started = _lowest(save.started, _Report(rank, t))
        elif event.name == "ckpt_saved":
            save.done = _lowest(save.done, _Report(rank, t))
            duration_s = read_number(event.details.get("duration_s"))
            if duration_s is not None and 0 <= duration_s < _LONGEST_S:
                save.duration_s = max(duration_s, save.duration_s or 0.0)
        else:
            error = str(event.details.get("error") or "no reason given")
            save.failed = _lowest(save.failed, _Report(rank, t, error))
        if len(self._saves) > _KEPT:
            forgotten = self._saves.pop(min(self._saves))
            self._failed_before += forgotten.failed is not None

    def shown(self, attempt: int, on_zero: Times) -> Checkpoints:
        """What is known now; a save counts as open in its own attempt and until a later one succeeded."""
        ordered = sorted(self._saves.items())
        good = [(key, save.done, save) for key, save in ordered if save.succeeded and save.done]
        newest = good[-1][0] if good else (-1, -1)
        open_since = [
            on_zero(save.started.rank, save.started.t)
            for key, save in ordered
            if save.started and not save.done and not save.failed and key[0] == attempt and key > newest
        ]
        shown = good[-_SHOWN:]
        return Checkpoints(
            open_since_t=min(open_since, default=None),
            saved_step=newest[1] if newest[1] >= 0 else None,
            saved_t=tuple(on_zero(done.rank, done.t) for _, done, _ in shown),
            durations_s=tuple(save.duration_s for _, _, save in shown if save.duration_s is not None),
            failed=tuple(
                FailedSave(
                    on_zero(save.failed.rank, save.failed.t),
                    key[1] if key[1] >= 0 else None,
                    save.failed.error,
                )
                for key, save in ordered
                if save.failed
            ),
            failed_before=self._failed_before,
        )


def _lowest(known: _Report | None, new: _Report) -> _Report:
    return new if known is None or new.rank <= known.rank else known
