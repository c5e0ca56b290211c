"""What an encoding does not know is written so that it can be read, and nothing ends with an error."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.cli.spelling import can_be_written


def written(text: str, encoding: str = "ascii") -> bytes:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="")
    can_be_written(stream)
    stream.write(text)
    stream.flush()
    return raw.getvalue()


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("rank 3 – gone", b"rank 3 - gone"),
        ("3 × …", b"3 x ..."),
        ("━━╺ 4 µs", b"==  4 us"),
        ("人", b"\\u4eba"),
    ],
)
def test_the_nearest_plain_character_says_the_same(text: str, plain: bytes) -> None:
    assert written(text) == plain


def test_an_encoding_that_knows_it_keeps_it() -> None:
    assert written("3 × –", "utf-8") == "3 × –".encode()
    assert written("3 × –", "latin-1") == b"3 \xd7 -"


@given(st.text(st.characters(exclude_characters='"\\', min_codepoint=32, exclude_categories=())))
def test_whatever_it_is_it_is_written_and_stays_one_string(text: str) -> None:
    assert isinstance(json.loads(b'"' + written(text).replace(b"\x7f", b"") + b'"'), str)
    written(text, "utf-8")
