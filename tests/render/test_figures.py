"""Figures in columns, in a terminal and on a page."""

from __future__ import annotations

from train_ledger.render.figures import Figures, figures_html, figures_lines
from train_ledger.render.picture import Cell

TABLE = Figures(
    ("", "time", "share", "means"),
    (("productive", "2 h 5 min", "92.0 %", "steps that count"), ("down", "4 s", Cell("0.1 %", "odd"), "")),
    title="where it went",
    left=frozenset((0, 3)),
)


def test_words_stand_on_the_left_and_figures_on_the_right_of_their_column() -> None:
    assert list(figures_lines(TABLE)) == [
        "                 time   share  means",
        "productive  2 h 5 min  92.0 %  steps that count",
        "down              4 s   0.1 %",
    ]


def test_a_page_gets_a_table_with_heads_for_rows_and_columns() -> None:
    html = figures_html(TABLE)
    assert "<caption>where it went</caption>" in html
    assert '<th scope="col" class="figure">time</th>' in html
    assert '<th scope="row">down</th>' in html


def test_a_cell_names_its_column_where_a_phone_shows_rows_as_blocks() -> None:
    html = figures_html(TABLE)
    assert '<div class="scroll wide">' in html
    assert '<td class="figure odd" data-of="share">0.1 %</td>' in html
    assert '<div class="scroll">' in figures_html(Figures(("", "a"), (("x", "1"),)))


def test_what_a_log_says_is_harmless() -> None:
    attack = '<b onclick="x">\x1b[31m'
    table = Figures((attack, attack), ((attack, attack),), attack)
    assert "<b" not in figures_html(table)
    assert '"x"' not in figures_html(table)
    assert "\x1b" not in "".join(figures_lines(table))
