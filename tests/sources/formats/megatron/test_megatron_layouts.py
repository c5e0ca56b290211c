"""A line that is read in one go says what it says when it is read piece by piece."""

from __future__ import annotations

import random

import pytest

from sources.mutated_lines import LINES, mutated
from train_ledger.sources.formats.megatron import megatron_fields
from train_ledger.sources.formats.megatron.megatron_fields import fields_of
from train_ledger.sources.formats.megatron.megatron_iteration import iteration_in
from train_ledger.sources.formats.megatron.megatron_layouts import Layouts

ITERATIONS = tuple(it for it in LINES if "iteration" in it and "|" in it)
NAMES = (
    " lm loss",
    " lm-loss",
    " elapsed time per iteration (ms)",
    " mem (GB)",
    " eta 0",
    " 5 s in",
    " x:y",
    " -",
    "",
)
VALUES = (
    "2.5E+00",
    " 2.5",
    "  7",
    "nan",
    "1,234.5",
    "2.0GB",
    "13.0/12.0",
    "1_0",
    "0.000",
    "-1",
    ".5",
    "5.",
    "",
    "0:05",
)


def lines(seed: int) -> list[str]:
    """Lines of few layouts, half of them damaged, so that layouts are learned and missed."""
    chance = random.Random(seed)
    damaged = [it.decode("utf-8", "replace") for it in mutated(ITERATIONS, 400, seed)]
    return [
        chance.choice(damaged) if chance.random() < 0.5 else chance.choice(ITERATIONS) for _ in range(800)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_what_was_learned_from_the_lines_before_changes_nothing(seed: int) -> None:
    layouts = Layouts()
    for text in lines(seed):
        assert repr(iteration_in(text, layouts)) == repr(iteration_in(text)), text


def test_a_layout_is_used_from_its_third_line_on() -> None:
    layouts = Layouts()
    pieces = [" lm loss: 2.5E+00 ", " grad norm: 0.5 ", ""]
    layouts.learn(pieces)
    assert layouts.values(" lm loss: 3.0 | grad norm: 1.5 |") is None
    layouts.learn(pieces)
    assert layouts.values(" lm loss: 3.0 | grad norm: 1.5 |") == {"loss": 3.0, "grad_norm": 1.5}
    assert layouts.values("lm loss: 3.0 | grad norm: 1.5 |") is None
    assert layouts.values(" lm loss: 3.0 | grad norm: 1.5 | x: 1 |") is None


def test_a_log_that_changes_its_names_in_each_line_makes_no_patterns() -> None:
    layouts = Layouts()
    for number in range(40):
        layouts.learn([f" n{chr(97 + number % 26)}x: 1 ", f" m{number}b: 1 ", ""])
    assert layouts.values(" nax: 1 | m0b: 1 |") is None


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_number_is_what_it_is_the_slow_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [f"{name}:{value} " for value in VALUES]
    quick = [repr(fields_of([it])) for it in pieces]
    monkeypatch.setattr(megatron_fields, "_meant", lambda name: None)
    assert quick == [repr(fields_of([it])) for it in pieces]
