"""A line is searched for the marks that its shape can hold alone, and none is missed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.sources.reading.standing_marks import StandingMarks

texts = st.text("ab1: |", max_size=8).map(str.encode)
marks = st.lists(st.lists(st.text("ab1: |", min_size=1, max_size=3).map(str.encode), max_size=3), max_size=4)


@given(marks, st.lists(texts, max_size=8))
def test_the_marks_that_stand_in_each_line_are_found(marks: list[list[bytes]], lines: list[bytes]) -> None:
    standing = StandingMarks(marks)
    for line in lines:
        every = [(place, tuple(mark for mark in of if mark in line)) for place, of in enumerate(marks)]
        found = tuple((place, of) for place, of in every if of)
        assert standing.of(line) == found
        assert standing.places(line) == [place for place, _ in found]


def test_lines_of_one_shape_are_told_apart_by_their_digits() -> None:
    standing = StandingMarks([(b"loss 2",), (b"loss ",)])
    assert standing.places(b"loss 2") == [0, 1]
    assert standing.places(b"loss 3") == [1]
