"""Did a restart go on with other data than the run had stood at?

Step by step, by the position that one rank told: the samples consumed, or the tokens. Where the batch is
another one than before – a job of another size – only where the attempt begins is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from train_ledger.config import Alerts
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.backtest.signs.lines import Lines

__all__ = ["data_position"]

_Told = Mapping[int, tuple[float, int]]


def data_position(lines: Lines, alerts: Alerts) -> Iterator[PastIncident]:
    """Restarts at other data, each from the first step that tells."""
    earlier: dict[int, tuple[float, int]] = {}
    for attempt in lines.attempts.values():
        telling = [rank.positions for _, rank in sorted(attempt.ranks.items()) if rank.positions]
        here = max(telling, key=len, default={})
        if len(here) > 1 and earlier and (found := _differs(here, earlier)) is not None:
            yield PastIncident(
                found[0], "data_position", found[0] + alerts.checkpoint_window_s + alerts.keep_firing_s
            )
        if here:
            first = min(here)
            while earlier and next(reversed(earlier)) >= first:
                earlier.popitem()
            earlier.update(sorted(here.items()))


def _differs(here: _Told, earlier: _Told) -> tuple[float, int] | None:
    """(when, step) of the first step at which the two tell another position."""
    first, second = sorted(here)[:2]
    last = max(earlier)
    batch, old_batch = _batch(here, first), _batch(earlier, min(first, last))
    if old_batch is None or batch is None:
        return None
    same = batch == old_batch
    if same:
        for step in sorted(here.keys() & earlier.keys()):
            if here[step][1] != earlier[step][1]:
                return here[step][0], step
    if first <= last and same:
        return None
    before = max((step for step in earlier if step < first), default=None)
    if before is None:
        return None
    expected = earlier[before][1] + old_batch * (first - 1 - before)
    off = here[first][1] - batch - expected
    return (here[second][0], first) if abs(off) > max(batch, old_batch) else None


def _batch(told: _Told, step: int) -> float | None:
    """By how much the position grows a step, at a step or before it."""
    steps = sorted(told)
    place = max((i for i, it in enumerate(steps) if it <= step), default=0)
    if len(steps) < 2:
        return None
    a, b = (steps[place], steps[place + 1]) if place + 1 < len(steps) else (steps[place - 1], steps[place])
    return (told[b][1] - told[a][1]) / (b - a)
