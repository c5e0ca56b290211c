"""What stopped the run, and how did it come back?

A recovery begins with the last step before the interruption and is over once the step once reached is passed.
Its parts follow one another; where nothing tells when one began or ended it has no length.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from train_ledger.ledger.accounts.history import Happened
from train_ledger.ledger.accounts.laps import RunLap
from train_ledger.ledger.accounts.records import Interruption, Recovery
from train_ledger.ledger.accounts.signs import Sign
from train_ledger.ledger.positions import regress

__all__ = ["Stop", "interruption_of", "recovery_of"]

_JOINS_ON = 0.02
"""Losses of the same steps differ by less where the numerics are the same and the data, too."""

_LATE_US = 5_000_000
_ENDED = ("signal 15", "signal 2", "signal 1", "signal_sent")
_KILLED = ("killed", "process_gone")


@dataclass(frozen=True, slots=True)
class Stop:
    """Two laps, one behind the other, and what is told between the end of one and the end of the other."""

    before: RunLap
    after: RunLap | None
    began_us: int | None
    signs: Sequence[Sign]
    told: Sequence[tuple[int, Happened]]
    reached: int
    passed_us: int | None

    @property
    def stopped_us(self) -> int:
        return self.before.times_us[-1]


def interruption_of(stop: Stop) -> Interruption:
    """What ended the attempt, as the first sign of death says."""
    return Interruption(stop.stopped_us / 1e6, stop.before.attempt, stop.before.last_step, _cause(stop.signs))


def _cause(signs: Sequence[Sign]) -> str:
    """A launcher ends the others at once where one of its ranks was killed; that one cannot say so itself."""
    deaths = [it for it in signs if it.what in ("dead", "gone") and it.cause]
    if not deaths:
        return "unknown"
    first = deaths[0]
    ended = {it.rank for it in deaths if it.cause in _ENDED}
    killed = (
        it
        for it in deaths
        if it.cause in _KILLED and it.rank not in (None, *ended) and it.t_us - first.t_us <= _LATE_US
    )
    return next((it.cause for it in killed if first.cause in _ENDED), first.cause)


def recovery_of(stop: Stop) -> Recovery | None:
    """How the run came back; None where no attempt followed."""
    after = stop.after
    if stop.began_us is None:
        return None
    first_us = after.times_us[0] if after is not None else None
    return Recovery(
        interruption=interruption_of(stop),
        attempt=after.attempt if after is not None else stop.before.attempt + 1,
        began_t=stop.stopped_us / 1e6,
        first_step_t=None if first_us is None else first_us / 1e6,
        over_t=None if stop.passed_us is None else stop.passed_us / 1e6,
        resumed_step=after.base if after is not None else None,
        redone_steps=max(0, min(after.last_step, stop.reached) - after.base) if after is not None else 0,
        parts_s=_parts(stop, first_us),
        loss_joins_on=_joins_on(stop.before, after) if after is not None else None,
        data_agrees=_data_agrees(stop.before, after) if after is not None else None,
    )


def _parts(stop: Stop, first_us: int | None) -> Mapping[str, float | None]:
    start, end = stop.stopped_us, first_us if first_us is not None else None
    opened = _first(stop.signs, "opened", start, end)
    dumped = _first(stop.signs, "dumped", opened if opened is not None else start, end)
    launched = _first(stop.signs, "launched", dumped or opened or start, end)
    loading, loaded = _load(stop, end)
    running = loaded if loaded is not None else first_us
    return {
        "detect": _between(start, opened),
        "dump": _between(opened, dumped),
        "decide": _between(dumped if dumped is not None else opened, launched),
        "restart": _between(launched, loading if loading is not None else stop.began_us),
        "load": _between(loading, loaded),
        "redo": _between(running, stop.passed_us),
    }


def _between(since_us: int | None, until_us: int | None) -> float | None:
    if since_us is None or until_us is None:
        return None
    return max(0, until_us - since_us) / 1e6


def _first(signs: Sequence[Sign], what: str, since_us: int, until_us: int | None) -> int | None:
    return min(
        (
            it.t_us
            for it in signs
            if it.what == what and it.t_us >= since_us and (until_us is None or it.t_us <= until_us)
        ),
        default=None,
    )


def _load(stop: Stop, end_us: int | None) -> tuple[int | None, int | None]:
    """When the checkpoint began to be loaded, and when it was."""
    if stop.began_us is None:
        return None, None
    began, loaded = None, None
    for t_us, it in stop.told:
        if t_us < stop.began_us - _LATE_US or (end_us is not None and t_us > end_us):
            continue
        if it.name == "phase_start" and it.phase == "checkpoint_load":
            began = t_us if began is None else began
        elif it.name == "ckpt_loaded" or (it.name == "phase_end" and it.phase == "checkpoint_load"):
            loaded = t_us
            lasted_s = it.details.get("duration_s")
            if began is None and isinstance(lasted_s, int | float) and math.isfinite(lasted_s):
                began = t_us - round(lasted_s * 1e6)
    return began, loaded


def _joins_on(before: RunLap, after: RunLap) -> bool | None:
    """Whether the loss of the steps done once more is what it was."""
    old, new = before.tape, after.tape
    if old is None or new is None:
        return None
    off: list[float] = []
    for place in range(len(new.steps)):
        if new.steps[place] > old.steps[-1]:
            break
        there = bisect_right(old.steps, new.steps[place]) - 1
        if there >= 0 and old.steps[there] == new.steps[place]:
            a, b = old.loss[there], new.loss[place]
            if math.isfinite(a) and math.isfinite(b):
                off.append(abs(a - b) / max(abs(a), 1e-9))
    return median(off) <= _JOINS_ON if off else None


def _data_agrees(before: RunLap, after: RunLap) -> bool | None:
    """Whether the data stood where it had stood; None where no position was told."""
    old, new = before.tape, after.tape
    if old is None or new is None or not old.positions.segments or not new.positions.segments:
        return None
    begin = new.positions.segments[0]
    if not old.positions.covers(begin) or not begin.is_line:
        return None
    return regress(new.positions, old.positions) is None
