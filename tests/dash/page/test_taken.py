"""What the journal tells of the first answers, and why there are no stacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from train_ledger.dash.page.taken import Taken, taken_of

WANTED = ["dump", "stacks", "diagnose"]
STARTED = {"kind": "response_started", "incident": "one", "on_page": WANTED}


def done(**others: Any) -> Mapping[str, Any]:
    told = {"summary": "4 dumps and 4 stacks in 3.1 s", "dumps": 4, "stacks": 4, "missing": []}
    return {"kind": "response_done", "incident": "one", **told, **others}


def test_it_is_under_way_until_it_is_done() -> None:
    assert not taken_of([], "one").is_under_way
    assert taken_of([STARTED], "one").is_under_way
    assert not taken_of([STARTED], "another").is_under_way
    taken = taken_of([STARTED, done()], "one")
    assert not taken.is_under_way
    assert (taken.dumps, taken.stacks) == (4, 4)
    assert taken.no_stacks == ""


def test_the_newest_answers_count() -> None:
    first = done(summary="4 dumps and 4 stacks in 3.1 s")
    assert taken_of([STARTED, first, STARTED], "one").is_under_way
    failed = {"kind": "response_failed", "incident": "one", "error": "OSError: full"}
    assert taken_of([STARTED, first, STARTED, failed], "one").error == "OSError: full"


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([], "[respond] on_page is not set"),
        ([{**STARTED, "on_page": ["dump"]}], "asks only for dump"),
        ([STARTED], "still being taken"),
        (
            [STARTED, done(stacks=0, missing=["no stacks of rank 2: py-spy is not there"])],
            "py-spy is not there",
        ),
        ([STARTED, done(stacks=0)], "no rank's process can be looked into"),
        (
            [STARTED, {"kind": "response_failed", "incident": "one", "error": "OSError: full"}],
            "OSError: full",
        ),
    ],
)
def test_why_there_are_no_stacks(entries: list[Mapping[str, Any]], why: str) -> None:
    assert why in taken_of(entries, "one").no_stacks


def test_an_entry_of_an_older_keeper_or_of_nonsense_is_no_trouble() -> None:
    old = {"kind": "response_done", "incident": "one", "summary": "4 dumps and 0 stacks in 3.1 s"}
    taken = taken_of([old], "one")
    assert (taken.summary, taken.stacks, taken.no_stacks) == (old["summary"], None, "")
    odd = {"kind": "response_done", "incident": "one", "dumps": "4", "missing": 7}
    assert taken_of([odd], "one") == Taken(("dump", "stacks", "diagnose"), is_done=True)
