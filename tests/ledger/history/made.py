"""Steps, and the history of a run of four ranks that was restarted once."""

from __future__ import annotations

from train_ledger.facts import Event, Step
from train_ledger.ledger.history import History


def step(number: int, rank: int = 0, attempt: int = 0, **values: float) -> Step:
    return Step(1000.0 + number, number, rank, attempt, "n0", values=values)


def told() -> History:
    history = History()
    for attempt, numbers in ((0, range(1, 101)), (1, range(61, 131))):
        for rank in range(4):
            history.add(Event(1000.0 + numbers[0], "run_start", rank, attempt=attempt, host="n0"))
            for number in numbers:
                history.add(step(number, rank, attempt, loss=2.0, compute_s=1.0 + (rank == 3)))
    return history
