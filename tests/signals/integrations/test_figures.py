"""Which of a framework's values are taken, and by which names."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from train_ledger.fields import FIELDS
from train_ledger.signals.integrations.figures import field_of, host_number, host_numbers, known_numbers

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("loss", "loss"),
        ("train/loss", "loss"),
        ("training.loss", "loss"),
        ("train_loss_step", "loss"),
        ("lm loss", "loss"),
        ("learning_rate", "lr"),
        ("lr-AdamW/pg1", "lr"),
        ("train.grad_norm", "grad_norm"),
        ("num_input_tokens_seen", "consumed_tokens"),
        ("eval_loss", "eval_loss"),
        ("val/loss", "val_loss"),
        ("rewards/chosen", "rewards_chosen"),
        ("train_runtime", "train_runtime"),
    ],
)
def test_a_name_is_ours_where_it_means_the_same(name: str, field: str) -> None:
    assert field_of(name) == field


@given(some.text())
def test_any_name_is_one_that_can_be_exported(name: str) -> None:
    assert all(letter in "abcdefghijklmnopqrstuvwxyz0123456789_" for letter in field_of(name))


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (2.5, 2.5),
        (torch.tensor(2.5), 2.5),
        (torch.tensor([3]), 3),
        (torch.tensor(2.5, requires_grad=True), 2.5),
        (torch.tensor(2.5, device="meta"), None),
        (torch.tensor([1.0, 2.0]), None),
        (torch.tensor(True), None),
        (torch.nn.Parameter(torch.tensor(2.5)), None),
        ("2.5", None),
        (None, None),
    ],
)
def test_a_number_is_taken_where_the_host_has_it(value: Any, number: float | None) -> None:
    assert host_number(value) == number


def test_of_two_values_for_a_field_the_first_counts() -> None:
    assert host_numbers({"loss": 1.0, "train/loss": 2.0, "bleu": 3, "text": "x", 7: 1.0}) == {
        "loss": 1.0,
        "bleu": 3,
    }
    assert set(known_numbers({"loss": math.nan, "bleu": 3})) == {"loss"} <= set(FIELDS)
    assert host_numbers(None) == {}
