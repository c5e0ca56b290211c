"""Lines of a timeline."""

from __future__ import annotations

from train_ledger.ops.postmortem.moment import Moment, day, in_order, stamps

T = 1_800_057_590.0
"""Ten seconds before a midnight, UTC."""


def _at(t: float | None, text: str = "") -> Moment:
    return Moment(t, text, "")


def test_by_time_and_what_has_none_stays_behind_what_it_was_told_after() -> None:
    told = in_order([_at(T + 5, "b"), _at(None, "after b"), _at(T, "a")])
    assert [it.text for it in told] == ["a", "b", "after b"]


def test_at_the_same_time_in_the_order_in_which_they_were_told() -> None:
    assert [it.text for it in in_order([_at(T, "x"), _at(T, "y")])] == ["x", "y"]


def test_a_new_day_is_told() -> None:
    assert stamps([_at(T), _at(T + 20), _at(T + 30), _at(None)]) == [
        "23:59:50",
        "2027-01-16 00:00:10",
        "00:00:20",
        "--:--:--",
    ]


def test_the_day() -> None:
    assert (day(T), day(None)) == ("2027-01-15", "undated")


def test_source_and_clock_stand_together() -> None:
    assert Moment(T, "", "a:1", "clock of b").where == "a:1; clock of b"
    assert Moment(T, "", "", "clock of b").where == "clock of b"
