"""Which facts that follow each other are one?

Two programs tell the same step (DeepSpeed's pipeline and Megatron), ranks without a name tell it each, and
one collective that timed out is told in several lines. Facts wait in a short queue until what belongs to them
has come; a fault that was told is not told again.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Container, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from train_ledger.facts import Fact, Fault, Step

__all__ = ["Succession"]

_Key = TypeVar("_Key", bound=Hashable)

_SPEAK_FOR_THE_JOB = (None, 0)
"""What rank 0 says of a step, and what is said without a name, is of the job: it is one step of nobody."""

_WAITING = 64
"""Facts that may stand between two that are one."""
_REMEMBERED = 1 << 16


class Succession:
    """A queue of facts: `add` gives those that nothing can join any more, `settle` all that wait.

    `repeated` counts, by code, faults that say again what one before them said.
    """

    def __init__(self) -> None:
        self.repeated: Counter[str] = Counter()
        self._queue: OrderedDict[int, Fact] = OrderedDict()
        self._number = 0
        self._steps: dict[int | None, int] = {}
        self._timeouts: dict[int | None, int] = {}
        self._faults: dict[tuple[str, str], int] = {}
        self._told: OrderedDict[object, None] = OrderedDict()

    def add(self, fact: Fact) -> Iterator[Fact]:
        if isinstance(fact, Step):
            if self._joins_step(fact):
                return
            self._steps[fact.rank] = self._put(fact)
        elif isinstance(fact, Fault):
            if self._joins_line(fact) or self._joins_timeout(fact) or self._is_the_failure(fact):
                return
            if self._was_told(fact):
                return
            self._faults[(fact.source, fact.fault)] = self._put(fact)
            if fact.fault == "watchdog_timeout":
                self._timeouts[fact.rank] = self._number
        else:
            self._put(fact)
        while len(self._queue) > _WAITING:
            yield self._queue.popitem(last=False)[1]

    def settle(self) -> list[Fact]:
        waiting = list(self._queue.values())
        self._queue.clear()
        self._steps.clear()
        self._timeouts.clear()
        self._faults.clear()
        return waiting

    def _put(self, fact: Fact) -> int:
        self._number += 1
        self._queue[self._number] = fact
        _forget(self._steps, self._queue)
        _forget(self._timeouts, self._queue)
        _forget(self._faults, self._queue)
        return self._number

    def _waiting(self, places: Mapping[Any, int], key: object) -> tuple[int, Fact | None]:
        place = places.get(key, 0)
        return place, self._queue.get(place)

    def _joins_step(self, fact: Step) -> bool:
        place, before = self._twin(fact, fact.rank)
        if before is None and fact.rank in _SPEAK_FOR_THE_JOB:
            place, before = self._twin(fact, 0 if fact.rank is None else None)
        if before is None:
            return False
        self._queue[place] = replace(
            before,
            rank=before.rank if before.rank == fact.rank else None,
            t=before.t if math.isfinite(before.t) else fact.t,
            host=before.host or fact.host,
            values=_both(before.values, fact.values),
        )
        return True

    def _twin(self, fact: Step, rank: int | None) -> tuple[int, Step | None]:
        place, before = self._waiting(self._steps, rank)
        is_twin = isinstance(before, Step) and (before.step, before.attempt) == (fact.step, fact.attempt)
        return place, before if is_twin and isinstance(before, Step) else None

    def _joins_line(self, fact: Fault) -> bool:
        """Two readers found the same trouble in one line."""
        place, before = self._waiting(self._faults, (fact.source, fact.fault))
        if not isinstance(before, Fault) or not fact.source:
            return False
        self._queue[place] = replace(
            before, t=before.t if before.t is not None else fact.t, details={**fact.details, **before.details}
        )
        return True

    def _joins_timeout(self, fact: Fault) -> bool:
        """The watchdog's second line about a work tells the group that the first leaves out."""
        if fact.fault != "watchdog_timeout" or fact.details.get("what") != "failure":
            return False
        place, before = self._waiting(self._timeouts, fact.rank)
        if not isinstance(before, Fault) or before.details.get("seq") != fact.details.get("seq"):
            return False
        if before.details.get("group") not in (None, fact.details.get("group")):
            return False
        joined = replace(before, details={**fact.details, **before.details})
        for same in _same(before):
            self._told.pop(same, None)
        if self._was_told(joined):
            del self._queue[place]
        else:
            self._queue[place] = joined
        return True

    def _is_the_failure(self, fact: Fault) -> bool:
        """The watchdog's line `either an error or timeout`, without one of a timeout, was of an error."""
        place, before = self._waiting(self._timeouts, fact.rank)
        if fact.fault != "nccl_error" or fact.rank is None or not isinstance(before, Fault):
            return False
        if before.fault != "watchdog_timeout" or before.details.get("what") != "failure":
            return False
        for same in _same(before):
            self._told.pop(same, None)
        joined = replace(before, fault="nccl_error", details={**before.details, **fact.details})
        if self._was_told(joined):
            del self._queue[place]
        else:
            self._queue[place] = joined
        return True

    def _was_told(self, fact: Fault) -> bool:
        told = any(same in self._told for same in _same(fact)[:1])
        if told:
            self.repeated[fact.fault] += 1
        for same in _same(fact):
            self._told[same] = None
            self._told.move_to_end(same)
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        return told


def _forget(places: dict[_Key, int], queue: Container[int]) -> None:
    """Drop, now and then, places that are no longer waited in."""
    if len(places) > 4 * _WAITING:
        for key in [key for key, place in places.items() if place not in queue]:
            del places[key]


def _both(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """The values of one step that two told: who does the skipping has counted more than who only looks on."""
    values = {**before, **after}
    if "skipped" in before and "skipped" in after:
        values["skipped"] = max(before["skipped"], after["skipped"])
    return values


_OF_DESYNC = (
    "what",
    "group",
    "rank_in_group",
    "ranks_in_group",
    "ranks_unfinished",
    "seq",
    "brought",
)


def _same(fact: Fault) -> tuple[object, ...]:
    """What two faults have in common that are one: what a fault is known by, then what else tells of it.

    A watchdog that ends its process says so once more, without the rank in front.
    """
    details = fact.details
    if fact.fault == "nan_suspected":
        return ()
    if fact.fault == "watchdog_timeout":
        work = (details.get("group"), details.get("seq"), details.get("what") == "stuck")
        bare = (fact.fault, None, details.get("rank_in_group"), fact.attempt, work)
        return (bare,) if fact.rank is None else ((fact.fault, fact.rank, None, fact.attempt, work), bare)
    if fact.fault == "xid":
        return () if fact.t is None else ((fact.t, fact.host, details.get("pci"), details.get("text")),)
    if fact.fault == "desync":
        return ((fact.fault, fact.rank, fact.attempt, *(str(details.get(name)) for name in _OF_DESYNC)),)
    named = (details.get("type"), details.get("message") or details.get("why"), details.get("exit_code"))
    process = (details.get("pid"), details.get("tasks"), details.get("number"), details.get("what"))
    return ((fact.fault, fact.rank, fact.host, fact.attempt, fact.step, process, named),)
