"""The table of numbers against ranks in a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.answer import Finding, Group, HangAnswer
from train_ledger.render import Picture, as_text, ranks_in_brief
from train_ledger.render.grid import grid_lines
from train_ledger.render.picture import Cell, Column, Step, Table

TABLE = Table(
    "group 0 (default_pg), ranks 0-7",
    (Column((0, 1, 2, 3, 4, 6, 7)), Column((5,), "culprit")),
    (
        Step("2890", (Cell("reduce_scatter [8], completed", "done"),) * 2),
        Step(
            "2891",
            (Cell("all_gather [8], scheduled", "pending"), Cell("all_reduce [1], scheduled", "odd")),
            here=True,
        ),
    ),
    ("and 3 more behind it, up to number 2894",),
)

GOLDEN = """\
  seq      ranks 0-4,6-7                   rank 5 (culprit)
  ----------------------------------------------------------------------
    2890   reduce_scatter [8], completed   reduce_scatter [8], completed
  > 2891   all_gather [8], scheduled       ! all_reduce [1], scheduled
  and 3 more behind it, up to number 2894
"""


def _lines(width: int | None = None, colour: bool = False, table: Table = TABLE) -> str:
    return "\n".join(grid_lines(table, width=width, colour=colour)) + "\n"


def test_the_first_difference_is_marked_in_row_and_column() -> None:
    assert _lines() == GOLDEN


def test_colour_changes_nothing_but_colour() -> None:
    coloured = _lines(colour=True)
    assert "\x1b[1;31m! all_reduce [1], scheduled" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert re.sub(" +\n", "\n", plain) == GOLDEN


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    told = _lines(width)
    assert max(map(len, told.splitlines())) <= width
    assert "> 2891" in told


def test_a_pipe_gets_plain_ascii() -> None:
    assert _lines().isascii()


@given(st.text(max_size=40))
def test_no_text_of_a_dump_draws_outside_of_its_cell(text: str) -> None:
    table = Table(text, (Column((0,)),), (Step("1", (Cell(text, "odd"),)),))
    told = _lines(table=table)
    assert len(told.splitlines()) <= 4
    assert "\x1b" not in told
    assert "[bold]" in _lines(table=Table("", (Column((0,)),), (Step("1", (Cell("[bold]x"),)),)))


def test_the_table_comes_before_the_details() -> None:
    finding = Finding("missing_ranks", (5,), Group("0", "", (5,)), 2891, "all_gather")
    answer = HangAnswer("hang", (5,), findings=(finding,))
    told = as_text(answer, picture=Picture(tables=((TABLE,),)))
    assert told.startswith(f"culprit: rank 5\n\n  {TABLE.title}\n{GOLDEN}\n  what ")


def test_many_ranks_are_named_in_brief() -> None:
    scattered = ranks_in_brief(it * it for it in range(128))
    assert scattered.startswith("128 ranks 0-1,4,9,16,")
    assert len(scattered) <= 120
    assert ranks_in_brief(range(0, 16384, 8)) == "ranks 0-16376 every 8th"
    assert ranks_in_brief(range(8)) == "ranks 0-7"
