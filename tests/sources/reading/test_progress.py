"""What a summary knows of how far a log's training came."""

from __future__ import annotations

import math

from train_ledger.facts import Event, Step
from train_ledger.sources import Progress


def test_an_evaluation_that_a_step_and_an_event_tell_is_one() -> None:
    progress = Progress()
    for step, loss in ((10, 3.0), (20, 2.0), (30, math.inf), (40, 2.5)):
        progress.add(Step(math.nan, step, None, values={"val_loss": loss}))
        progress.add(Event(math.nan, "eval_end", None, step, details={"val_loss": loss}))
    told = progress.evaluated
    assert told is not None
    assert (told.first, told.last, told.least, told.times) == (3.0, 2.5, 2.0, 4)


def test_each_trainers_name_of_that_loss_is_known_and_a_training_loss_is_none() -> None:
    for event in ({"eval_loss": 2.0}, {"val_loss": 2.0}, {"loss": 2.0}):
        progress = Progress()
        progress.add(Event(math.nan, "eval_end", None, details=event))
        assert progress.evaluated is not None
    progress = Progress()
    progress.add(Step(math.nan, 1, None, values={"loss": 2.0}))
    progress.add(Event(math.nan, "eval_end", None, details={"duration_s": 2.0}))
    assert progress.evaluated is None


def test_overflows_are_counted_by_rank() -> None:
    progress = Progress()
    for rank in (0, 1, 0):
        progress.add(Event(math.nan, "warning", rank, details={"what": "overflow"}))
    progress.add(Event(math.nan, "warning", 0, details={"what": "loss scale reduced"}))
    assert progress.overflows == {0: 2, 1: 1}
