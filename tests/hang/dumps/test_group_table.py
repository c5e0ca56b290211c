"""Which groups and ranks are taken over from the table of a dump."""

from __future__ import annotations

from typing import Any

import pytest

from train_ledger.hang.dumps.group_table import MOST_RANKS, group_table


@pytest.mark.parametrize(
    ("raw", "table"),
    [
        ({"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, {"0": ("default_pg", "[0, 1]")}),
        ({"0": {"desc": "default_pg", "ranks": [0, 1]}}, {"0": ("default_pg", "[0, 1]")}),
        ({0: [0, 1]}, {"0": ("", "[0, 1]")}),
        ({"": {"name": "", "desc": "", "ranks": "[]"}}, {"": ("", "[]")}),
        (None, {}),
    ],
)
def test_every_shape_that_versions_have_written(raw: Any, table: dict[str, tuple[str, str]]) -> None:
    assert group_table(raw) == (table, None)


@pytest.mark.parametrize(
    "ranks",
    [
        5,
        None,
        [0, None],
        [0, -1],
        [0, 1.5],
        "[0, -1]",
        "[0, 1.5]",
        "[0, x]",
        f"[0, {MOST_RANKS}]",
        "[9999999999999]",
    ],
)
def test_a_group_with_a_rank_that_cannot_be_is_left_out_and_said(ranks: Any) -> None:
    table, odd = group_table({"0": {"desc": "a", "ranks": "[0]"}, "1": {"desc": "b", "ranks": ranks}})
    assert table == {"0": ("a", "[0]")}
    assert odd == "1 of 2 listed groups not understood"


@pytest.mark.parametrize("raw", [5, [1], "[0]"])
def test_a_table_that_is_none_is_said(raw: Any) -> None:
    assert group_table(raw) == ({}, "the table of groups is not understood")


@pytest.mark.parametrize("groups", [1, 4])
def test_more_members_than_any_job_has_are_refused(groups: int) -> None:
    listed = list(range(MOST_RANKS // groups))
    raw = {str(number): {"desc": "", "ranks": listed} for number in range(groups)}
    assert group_table(raw)[1] is None
    raw["one more"] = {"desc": "", "ranks": [0]}
    assert group_table(raw) == ({}, "its groups list more than 1048576 members together: refused")
