"""What time was spent on, from left to right."""

from __future__ import annotations

from train_ledger.render.strip import Strip, sliced, strip_html, strip_lines

KINDS = ("productive", "down")


def test_each_slice_shows_what_most_of_it_went_into() -> None:
    assert sliced([(0, 0.0, 7.0), (1, 7.0, 10.0)], 10) == (0,) * 7 + (1,) * 3
    assert sliced([(0, 0.0, 7.4), (1, 7.4, 10.0)], 10) == (0,) * 7 + (1,) * 3


def test_no_time_has_no_slices() -> None:
    assert sliced([]) == ()
    assert sliced([(0, 5.0, 5.0)]) == ()


def test_a_terminal_gets_a_letter_a_slice_and_what_it_stands_for() -> None:
    strip = Strip((0, 0, 1), KINDS, "PD")
    assert strip_lines(strip) == ["PPD", "P productive  D down"]


def test_a_page_gets_a_bar_a_run_of_slices() -> None:
    html = strip_html(Strip((0, 0, 1), KINDS, "PD", "from", "to"))
    assert html.count("<rect") == 2
    assert "from – to" in html


def test_what_a_log_says_is_harmless() -> None:
    html = strip_html(Strip((0,), ("<script>",), "S", "\x1b[31m", "<b>"))
    assert "<script>" not in html
    assert "\x1b" not in html
    assert "<b>" not in html
