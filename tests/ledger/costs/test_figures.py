"""Figures as a person gives them."""

from __future__ import annotations

import pytest

from train_ledger.ledger.costs import FIGURES, FigureError, assumed, given


def test_a_few_figures_with_and_without_units() -> None:
    found = given("world_size=512, price=2.1,mtbi=3h, interval=24min,checkpoint=45")
    assert {name: it.value for name, it in found.items()} == {
        "world_size": 512,
        "price": 2.1,
        "mtbi": 10_800,
        "interval": 1440,
        "checkpoint": 45,
    }
    assert {it.origin for it in found.values()} == {"given"}


@pytest.mark.parametrize(
    "text",
    [
        "price",
        "=3",
        "gpus=8",
        "world_size=-1",
        "world_size=0",
        "world_size=1.5",
        "mfu=200",
        "price=nan",
        "price=inf",
        "price=1e400",
        "interval=24 parsecs",
        "price=3min",
        "mtbi=0",
        "price=--1",
        "price=\x1b[31m",
        "price=" + "1" * 5000,
    ],
)
def test_what_is_no_figure_is_told_in_one_line(text: str) -> None:
    with pytest.raises(FigureError, match=r"^--assume [^\n]*wanted"):
        given(text)


def test_nothing_given_is_nothing() -> None:
    assert given("") == given(" , ") == {}


def test_what_nobody_says_is_assumed() -> None:
    assert {name: it.value for name, it in assumed().items()} == {
        name: known.default for name, known in FIGURES.items()
    }
    assert {it.origin for it in assumed().values()} == {"assumed"}
