"""Did training go on after an exception that a log shows?

A program may catch an exception, print its traceback and go on: that is an event, not a fault. Whether it did
is known once more steps are told in the same attempt. One that the interpreter printed while it ended the
process – torch puts the rank in front of it – needs no waiting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from train_ledger.facts import Event, Fact, Fault, Step

__all__ = ["Survived"]

_STEPS = 3
"""A rank may have printed a step or two when another one died."""
_WAITING = 256


class Survived:
    """Passes facts on, but keeps an exception until steps follow it, or nothing does."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Fault, set[int]]] = []

    def of(self, fact: Fact) -> Iterator[Fact]:
        if isinstance(fact, Step):
            yield from self._judged(fact) if self._waiting else ()
        elif isinstance(fact, Fault) and _may_be_survived(fact):
            self._waiting.append((fact, set()))
            if len(self._waiting) > _WAITING:
                yield self._waiting.pop(0)[0]
            return
        yield fact

    def settle(self) -> Iterator[Fact]:
        """Those after which nothing came."""
        waiting, self._waiting = self._waiting, []
        yield from (fault for fault, _ in waiting)

    def _judged(self, step: Step) -> Iterator[Fact]:
        left = []
        for fault, steps in self._waiting:
            if None in (step.rank, fault.rank) or step.rank == fault.rank:
                if step.attempt != fault.attempt:
                    yield fault
                    continue
                steps.add(step.step)
            if len(steps) >= _STEPS:
                yield _event(fault)
            else:
                left.append((fault, steps))
        self._waiting = left


def _may_be_survived(fault: Fault) -> bool:
    is_raised = fault.fault == "exception" and "type" in fault.details
    return is_raised and not fault.details.get("in_front")


def _event(fault: Fault) -> Event:
    return Event(
        math.nan if fault.t is None else fault.t,
        "exception",
        fault.rank,
        fault.step,
        fault.attempt,
        fault.host,
        fault.source,
        {**fault.details, "fatal": False},
    )
