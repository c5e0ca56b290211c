"""Which pauses did the writers of a run leave out of their step times?

By the contract `step_time_s` is measured from step to step, so that a step that came later than it says shows
a clock that jumped. A loop that times its own work alone says the same of every pause. Where several hosts
tell a run it can be told apart: clocks jump one by one, a pause is one of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from train_ledger.facts import Fact, Step
from train_ledger.fields import read_number

__all__ = ["with_pauses"]

_LATE_S = 5.0
"""As in the clocks of ranks: less is no jump."""

_At = tuple[int, int]


class _Late(NamedTuple):
    host: str
    by_s: float


def with_pauses(facts: Iterable[Fact]) -> list[Fact]:
    """The facts; steps that came late on all hosts alike took as long as they took."""
    facts = list(facts)
    steps = {place: (it, passed_s) for place, it, passed_s in _timed(facts)}
    late: dict[_At, list[_Late]] = {}
    for it, passed_s in steps.values():
        late.setdefault((it.attempt, it.step), []).append(_Late(it.host or "", passed_s - _told_s(it)))
    paused = {at for at, those in late.items() if _is_pause(those)}
    for place, (it, passed_s) in steps.items():
        if (it.attempt, it.step) in paused:
            facts[place] = replace(it, values={**it.values, "step_time_s": passed_s})
    return facts


def _timed(facts: Iterable[Fact]) -> Iterator[tuple[int, Step, float]]:
    """Each step that follows its rank's last one directly and says how long it took: where, and how long."""
    before: dict[int, Step] = {}
    for place, it in enumerate(facts):
        if not isinstance(it, Step) or it.rank is None:
            continue
        last = before.get(it.rank)
        before[it.rank] = it
        follows = last is not None and (last.attempt, last.step + 1) == (it.attempt, it.step)
        if last is not None and follows and read_number(it.values.get("step_time_s")) is not None:
            yield place, it, it.t - last.t


def _told_s(step: Step) -> float:
    return read_number(step.values["step_time_s"]) or 0.0


def _is_pause(those: list[_Late]) -> bool:
    by_s = [it.by_s for it in those]
    return len({it.host for it in those}) > 1 and min(by_s) > _LATE_S and max(by_s) - min(by_s) <= _LATE_S
