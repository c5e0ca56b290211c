"""The words of a verdict."""

from __future__ import annotations

import doctest
import importlib

import pytest

from train_ledger.answer import HANG_KINDS, Finding, Group, HangAnswer
from train_ledger.render import duration, moment, verdict, words


@pytest.mark.parametrize("kind", HANG_KINDS)
@pytest.mark.parametrize("culprits", [(), (3,), (3, 4)])
def test_every_kind_of_hang_has_words(kind: str, culprits: tuple[int, ...]) -> None:
    finding = Finding(kind, culprits, Group("0", "", (0, 3)), 1, "barrier")
    told = words.what_happened(finding)
    assert " " in told
    assert kind not in told or culprits
    assert verdict(HangAnswer("hang", culprits, kind=kind, findings=(finding,))) != ""


def test_times_that_no_calendar_has_are_still_told() -> None:
    assert moment(float("nan")) == "nan (unix seconds)"
    assert moment(1e300) == "1e+300 (unix seconds)"
    assert duration(float("inf")) == "inf s"


@pytest.mark.parametrize("module", ["harmless", "ranks", "words"])
def test_the_examples_in_the_docstrings(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"train_ledger.render.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
