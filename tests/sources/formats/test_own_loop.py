"""Lines that training loops of somebody's own print."""

from __future__ import annotations

import pytest

from train_ledger.facts import Fact, Step
from train_ledger.sources import FactReader


def read(*lines: str) -> list[Fact]:
    reader = FactReader("train.log")
    return [*reader.feed("\n".join(lines).encode()), *reader.end()]


@pytest.mark.parametrize(
    "line",
    [
        "step {step} loss 2.25",
        "step: {step} loss: 2.25",
        "Step {step}, Loss: 2.25",
        "step={step} loss=2.25",
        "step={step},loss=2.25",
        "Step {step}/200 | loss 2.25",
        "iter {step} loss 2.25",
        "Iteration {step} - train loss: 2.25",
        "epoch 1 step {step} loss 2.25",
        "[Epoch 1/3] [Step {step}/200] loss: 2.25",
        "Epoch: 1 | Step: {step} | Loss: 2.25",
        "global_step {step}: loss=2.25",
    ],
)
def test_a_step_and_its_loss(line: str) -> None:
    told = read(*(line.format(step=step) for step in (10, 20)))
    assert [(it.step, it.values) for it in told if isinstance(it, Step)] == [
        (10, {"loss": 2.25}),
        (20, {"loss": 2.25}),
    ]


def test_what_else_stands_in_the_line_whose_it_is_and_of_when() -> None:
    line = (
        "[rank3]: 2026-02-03 04:05:06,250 - step 10, loss 2.25, lr 1e-4, grad_norm 0.5, time 250ms, acc 0.75"
    )
    (step,) = read(line)
    assert isinstance(step, Step)
    assert (step.rank, step.t) == (3, 1770091506.25)
    assert step.values == {"loss": 2.25, "lr": 1e-4, "grad_norm": 0.5, "step_time_s": 0.25, "acc": 0.75}


def test_a_loss_that_is_no_number_is_seen() -> None:
    told = read("step 1 loss 2.5", "step 2 loss nan")
    assert [getattr(it, "fault", None) for it in told] == [None, None, "nan_suspected"]


@pytest.mark.parametrize(
    "line",
    [
        "step 10 loss",
        "step 10 of the plan: loss 3 of 5",
        "step 10 the loss 2.25 was seen",
        "at step 10 loss 2.25",
        "steps: 10 loss: 2.25",
        "step 10 lr 0.5",
        "print('step 10 loss 2.25')",
        "# step 10 loss 2.25",
        'logger.info("step 10 loss 2.25")',
        "step 10 loss 2.25 {x}",
    ],
)
def test_what_is_no_such_line(line: str) -> None:
    assert read(line, line.replace("10", "20")) == []


def test_a_line_of_a_trainer_that_is_known_is_its_own() -> None:
    reader = FactReader("train.log")
    reader.feed(b"iter 10: loss 2.2500, time 250.00ms, mfu 12.50%\n" * 200)
    reader.end()
    assert [it.name for it in reader.formats] == ["nanoGPT"]
