"""What stands around an answer on a page."""

from __future__ import annotations

import pytest

from train_ledger.render import Made
from train_ledger.render.frame import framed

MADE = Made("slow", "train-ledger slow runs/r42 --html slow.html", "0.1.0", 1_796_007_600.0)


def test_when_and_by_which_command_it_was_made() -> None:
    page = framed("culprit: rank 5", "trouble", "", title="runs/r42", made=MADE)
    assert '<p class="about">slow · <b>runs/r42</b></p>' in page
    assert "asked at 2026-11-30 03:00:00 UTC" in page
    assert "<p>Made by <code>train-ledger slow runs/r42 --html slow.html</code></p>" in page
    assert "<p>train-ledger 0.1.0, 2026-11-30 03:00:00 UTC</p>" in page


def test_as_known_at_a_time_in_the_past() -> None:
    page = framed("x", "fine", "", made=Made("slow", t=1_796_007_600.0, as_known_t=1_796_000_000.0))
    assert "as known at 2026-11-30 00:53:20 UTC" in page


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("--prometheus http://ann:secret@prom:9090/x", "--prometheus http://…@prom:9090/x"),
        ("--prometheus 'https://prom/?token=secret&x=1' --html a", "--prometheus 'https://prom/?…' --html a"),
        ("--prometheus http://ann:sec@ret@prom:9090/x", "--prometheus http://…@prom:9090/x"),
        ("--prometheus http://ann:secret@prom/x?token=secret", "--prometheus http://…@prom/x?…"),
        (
            "--prometheus 'http://prom/x?token='\"'\"'secret' --html a",
            "--prometheus 'http://prom/x?…' --html a",
        ),
        ("--prometheus 'https://prom/?mail=ann@secret'", "--prometheus 'https://prom/?…'"),
        ("--prometheus=https://prom/a#secret", "--prometheus=https://prom/a?…"),
        ("--prometheus http://prom:9090 --at 5", "--prometheus http://prom:9090 --at 5"),
    ],
)
def test_a_page_that_is_sent_on_tells_no_secret_of_an_address(command: str, told: str) -> None:
    assert Made(command=command).command == told


@pytest.mark.parametrize(("tone", "mark"), [("trouble", "✖"), ("fine", "✔"), ("unsure", "?")])
def test_the_tab_says_how_it_ended_without_a_colour(tone: str, mark: str) -> None:
    assert f"<title>{mark} x</title>" in framed("x", tone, "")  # type: ignore[arg-type]


def test_words_of_others_are_words() -> None:
    attack = "<script>alert(1)</script>\x1b[2J"
    page = framed(attack, "fine", "", title=attack, made=Made(attack, attack, attack))
    assert "<script>" not in page
    assert "\x1b" not in page
