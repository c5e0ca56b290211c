"""The words of a verdict."""

from __future__ import annotations

import dataclasses
import doctest
import importlib

import pytest

from train_ledger.answer import HANG_KINDS, Finding, Group, HangAnswer
from train_ledger.render import as_text, duration, moment, place_in_code, verdict, words


@pytest.mark.parametrize("kind", HANG_KINDS)
@pytest.mark.parametrize("culprits", [(), (3,), (3, 4)])
def test_every_kind_of_hang_has_words(kind: str, culprits: tuple[int, ...]) -> None:
    finding = Finding(kind, culprits, Group("0", "", (0, 3)), 1, "barrier")
    told = words.what_happened(finding)
    assert " " in told
    assert kind not in told or culprits
    assert verdict(HangAnswer("hang", culprits, kind=kind, findings=(finding,))) != ""


WORLD = Group("0", "default_pg", (0, 1, 2))


@pytest.mark.parametrize(
    ("finding", "missing", "told"),
    [
        (
            Finding("size_or_syntax_mismatch", (), WORLD, 5, "all_reduce", "all_reduce", waiting=(1, 2)),
            (0,),
            "ranks 1-2 came to all_reduce with different sizes; "
            "with no dump of rank 0 neither side has a majority",
        ),
        (
            Finding("collective_type_mismatch", (), WORLD, 5, "broadcast", "barrier", waiting=(1, 2)),
            (),
            "ranks 1-2 came with different operations, broadcast and barrier; "
            "without rank 0 neither side has a majority",
        ),
        (
            Finding("collective_dtype_mismatch", (), WORLD, 5, "all_reduce", waiting=(0, 1, 2)),
            (),
            "ranks 0-2 came to all_reduce with different data types; neither side has a majority",
        ),
    ],
)
def test_a_tie_says_who_differs_and_who_could_have_settled_it(
    finding: Finding, missing: tuple[int, ...], told: str
) -> None:
    answer = HangAnswer("hang", kind=finding.kind, findings=(finding,), missing_dumps=missing)
    assert words.what_happened(finding, answer) == told
    assert verdict(answer) == f"nobody to blame: {told}"
    assert f"  what        {told} ({finding.kind})\n" in as_text(answer)


@pytest.mark.parametrize(
    ("kind", "culprits", "waiting", "told"),
    [
        ("missing_ranks", (3,), (1,), "rank 1 waits for rank 3"),
        ("size_or_syntax_mismatch", (), (1, 2), "ranks 1-2 wait for each other"),
        ("size_or_syntax_mismatch", (), (1,), "rank 1 waits; for whom cannot be said"),
        ("no_mismatch", (), (0, 1), "ranks 0-1 wait for each other"),
        ("p2p_unpaired", (), (0, 3), "ranks 0,3 wait; for whom cannot be said"),
        ("no_mismatch", (), (), None),
    ],
)
def test_who_waits_and_for_whom(
    kind: str, culprits: tuple[int, ...], waiting: tuple[int, ...], told: str | None
) -> None:
    finding = Finding(kind, culprits, None, 1, "barrier", waiting=waiting)
    assert words.who_waits(finding, HangAnswer("hang", culprits, findings=(finding,))) == told


def test_times_that_no_calendar_has_are_still_told() -> None:
    assert moment(float("nan")) == "nan (unix seconds)"
    assert moment(1e300) == "1e+300 (unix seconds)"
    assert duration(float("inf")) == "inf s"


@pytest.mark.parametrize("module", ["harmless", "ranks", "words"])
def test_the_examples_in_the_docstrings(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"train_ledger.render.{module}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_a_frame_that_a_dump_recorded_is_not_where_the_rank_stands() -> None:
    recorded = Finding("missing_ranks", (2,), None, 4, "all_reduce", frame="train.py:27 main")
    seen = dataclasses.replace(recorded, evidence=("stack of rank 2: sleeps, at train.py:6 wait",))
    assert (place_in_code(recorded), place_in_code(seen)) == ("last call", "stands in")
