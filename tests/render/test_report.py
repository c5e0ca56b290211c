"""Whatever a log or a file's name says, a report of it moves no cursor."""

from __future__ import annotations

from train_ledger.render import Report
from train_ledger.render.report import Frames, Pair, Point, Section
from train_ledger.render.text import as_text

HOSTILE = "logs/\x1b[2Jrank\n5\x07\u202e.log"


def test_every_word_of_a_report_is_harmless() -> None:
    rows = (Pair(HOSTILE, HOSTILE), Point(HOSTILE), Frames((HOSTILE,), HOSTILE))
    said = as_text(Report(HOSTILE, "fine", (Section(HOSTILE, rows),)))
    assert said.count("logs/rank 5\ufffd\ufffd.log") == 7
    assert all(character.isprintable() or character == "\n" for character in said)
