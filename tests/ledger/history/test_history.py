"""The history of a run is the same however its facts came."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ledger.history.made import step, told
from train_ledger.facts import Event, Fault, HardwareReading, Step, Stretch
from train_ledger.ledger.history import (
    History,
    curves,
    gpu_strips,
    strips,
)
from train_ledger.ledger.history.fields import CURVES


class Plain:
    """A step as the quick way decodes it: every field an attribute."""

    def __init__(self, fact: Step) -> None:
        self.t, self.step = fact.t, fact.step
        for name in CURVES:
            setattr(self, name, fact.values.get(name))


def test_each_attempt_has_its_curves_and_what_was_done_again_is_marked() -> None:
    first, second = curves(told(), ["loss", "compute_s", "mfu"])
    assert (first.attempt, first.steps[0], first.steps[-1], first.redone_to) == (0, 1, 100, None)
    assert (second.attempt, second.steps[0], second.redone_to) == (1, 61, 100)
    assert [curve.field for curve in first.curves] == ["loss", "compute_s"]
    work = first.curves[1]
    assert (work.low[0], work.mean[0], work.high[0], work.worst[0]) == (1.0, 1.25, 2.0, 3)


def test_a_stretch_is_as_good_as_its_steps() -> None:
    steps = [step(number, loss=2.0 / number, mfu=40.0) for number in range(1, 200)]
    one_by_one, at_once = History(), History()
    for each in steps:
        one_by_one.add(each)
    at_once.add_stretch(Stretch([Plain(each) for each in steps[:-1]], steps[-1]))  # type: ignore[arg-type]
    assert curves(one_by_one) == curves(at_once)


def test_a_loss_that_is_no_number_is_counted_and_not_drawn() -> None:
    history = History()
    for number, loss in enumerate([2.0, math.nan, math.inf, 2.0]):
        history.add(step(number, loss=loss))
    (loss_curve,) = curves(history, ["loss"])[0].curves
    assert loss_curve.odd == [0, 1, 1, 0]
    assert loss_curve.high == [2.0, None, None, 2.0]


def test_a_figure_that_no_sum_can_hold_is_counted_and_hides_no_other() -> None:
    history = History()
    for number, figure in enumerate([2.0, 1.7e308, -1.7e308, 1.7e308, 2.0]):
        history.add(step(number, loss=figure, compute_s=figure))
    for t in range(3):
        history.add_hardware(
            HardwareReading(1e9 + t, "n0", gpu=0, values={"DCGM_FI_DEV_GPU_TEMP": 1.7e308 if t else 50.0})
        )
    (part,) = curves(history, ["loss"], points=2)
    (loss,) = part.curves
    assert (sum(loss.odd), loss.low[0], loss.mean[0], loss.high[0]) == (3, 2.0, 2.0, 2.0)
    assert all(np.nanmax(strip.cells) == 2.0 for strip in strips(history))
    assert all(np.nanmax(strip.cells) == 50.0 for strip in gpu_strips(history))


def test_a_rank_that_goes_back_is_taken_as_it_comes() -> None:
    history = History()
    for number in (1, 2, 3, 2, 3, 4):
        history.add(step(number, loss=1.0 * number))
    (part,) = curves(history, ["loss"])
    assert part.steps == [1, 2, 3, 4]
    assert part.curves[0].high == [1.0, 2.0, 3.0, 4.0]


def test_the_rank_that_is_furthest_above_the_others_comes_first() -> None:
    (strip,) = strips(told())
    assert (strip.field, strip.extreme[0]) == ("compute_s", "3")
    assert list(strip.names) == ["0", "1", "2", "3"]
    assert strip.cells.shape == (4, 70)


def test_marks_that_all_ranks_tell_are_one() -> None:
    history = told()
    for rank in range(4):
        history.add(Event(1050.0, "ckpt_saved", rank, step=50))
        history.add(Event(1060.0 + rank, "exception", rank))
    history.add_hardware(Fault(1070.0, "xid", host="n0"))
    history.add(Fault(1070.0, "xid", host="n0"))
    history.add(Fault(1090.0, "xid", host="n0"))
    names = [mark.name for mark in history.marks]
    assert {name: names.count(name) for name in names} == {
        "run_start": 2,
        "ckpt_saved": 1,
        "exception": 4,
        "xid": 2,
    }


def test_gpus_are_drawn_over_time() -> None:
    history = History()
    for t in range(100):
        history.add_hardware(HardwareReading(1e9 + t, "n0", gpu=3, values={"DCGM_FI_DEV_SM_CLOCK": 1980.0}))
    (strip,) = gpu_strips(history)
    assert (list(strip.names), strip.base) == (["n0 3"], 10**9)
    assert strip.cells[0].tolist() == [1980.0] * 100


def test_a_spike_of_one_step_is_seen_from_afar() -> None:
    history = History()
    for number in range(100_000):
        history.add(step(number, loss=9.0 if number == 77_777 else 2.0))
    (part,) = curves(history, ["loss"], points=200)
    assert len(part.steps) <= 200
    assert max(it for it in part.curves[0].high if it is not None) == 9.0
    (near,) = curves(history, ["loss"], first=77_000, last=78_000, points=4000)
    assert near.width < part.width
    assert near.steps[0] <= 77_000


def test_a_field_without_a_history_is_told() -> None:
    with pytest.raises(KeyError, match="colour"):
        curves(told(), ["colour"])
