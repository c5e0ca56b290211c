"""Most of a log is only passed: fast, and without losing a line that somebody wants."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.sources.reading.wanted_lines import Shapes, WantedLines, needles_of

BENCH = Path(__file__).parents[3] / "bench" / "read_logs.py"
LEAST_MB_S = 50.0
"""Half of what it is held to on a machine of its own."""

texts = st.lists(st.text("ab1: |\r", max_size=6), max_size=12).map(lambda lines: "\n".join(lines).encode())
marks = st.lists(st.text("ab1: |", min_size=1, max_size=3).map(str.encode), min_size=1, max_size=4)


@given(st.lists(texts, max_size=4), marks)
def test_no_line_with_a_mark_is_lost_and_each_keeps_its_number(
    blocks: list[bytes], marks: list[bytes]
) -> None:
    lines = WantedLines(Shapes(marks), lambda: False)
    found = [it for block in blocks for it in lines.of(block)]
    all_lines = [line for block in blocks for line in block.split(b"\n")]
    assert lines.lines == len(all_lines)
    assert all(all_lines[number - 1] == line for number, line in found)
    assert [number for number, _ in found] == sorted({number for number, _ in found})
    wanted = {number for number, line in enumerate(all_lines, 1) if any(mark in line for mark in marks)}
    assert wanted <= {number for number, _ in found}


@given(texts)
def test_while_more_is_wanted_every_line_is(block: bytes) -> None:
    assert [line for _, line in WantedLines(Shapes([b"zzz"]), lambda: True).of(block)] == block.split(b"\n")


def test_a_mark_of_digits_alone_wants_every_line() -> None:
    assert needles_of([b"42", b"loss"]) == (b"",)
    assert list(WantedLines(Shapes([b"42"]), lambda: False).of(b"a\nb42")) == [(1, b"a"), (2, b"b42")]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("read_logs", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_chatter_is_passed_at_speed(bench: ModuleType) -> None:
    text = bench.text_of(bench.chatter, 8 << 20)
    assert max(bench.rate_mb_s(text)[0] for _ in range(3)) > LEAST_MB_S
