"""One open file, read in blocks of whole lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.sources.stream import LINE_LIMIT_BYTES, Block, Skipped, Stream


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "rank.jsonl"


@pytest.fixture
def stream(log: Path) -> Iterator[Stream]:
    log.touch()
    stream = Stream(os.open(log, os.O_RDONLY), "rank.jsonl", Skipped())
    yield stream
    stream.close()


def blocks(stream: Stream, limit: int = 1 << 24) -> list[Block]:
    found = []
    while stream.look():
        found += stream.read_blocks(limit)
    return found


def test_lines_that_follow_each_other_are_one_block(log: Path, stream: Stream) -> None:
    log.write_bytes(b"a\nb\n\nto")
    assert blocks(stream) == [Block("rank.jsonl", 1, b"a\nb\n")]
    with log.open("ab") as writer:
        writer.write(b"rn\nd\n")
    assert blocks(stream) == [Block("rank.jsonl", 4, b"torn\nd")]


def test_a_block_gives_its_lines_with_their_numbers(log: Path, stream: Stream) -> None:
    log.write_bytes(b"a\n\nc\n")
    (block,) = blocks(stream)
    assert [(line.number, line.data) for line in block.lines()] == [(1, b"a"), (2, b""), (3, b"c")]


def test_an_empty_line_alone_is_a_block(log: Path, stream: Stream) -> None:
    log.write_bytes(b"\n")
    assert blocks(stream) == [Block("rank.jsonl", 1, b"")]


def test_lines_with_nuls_come_one_by_one_and_without_them(log: Path, stream: Stream) -> None:
    log.write_bytes(b"a\ncut\0\0b\n\0\nc\n")
    assert [(it.number, it.data) for it in blocks(stream)] == [(1, b"a"), (2, b"b"), (4, b"c")]
    assert stream.skipped == {"nul_bytes": 3, "torn": 1}


@pytest.mark.parametrize("before", [0, 3, LINE_LIMIT_BYTES - 1])
@pytest.mark.parametrize(("length", "fits"), [(LINE_LIMIT_BYTES, True), (LINE_LIMIT_BYTES + 1, False)])
def test_a_line_is_too_long_from_one_byte_over_the_limit(
    log: Path, stream: Stream, before: int, length: int, fits: bool
) -> None:
    log.write_bytes(b"y" * before + b"\n" + b"x" * length + b"\nz\n")
    lines = [line for block in blocks(stream) for line in block.lines()]
    assert [line.number for line in lines] == ([1, 2, 3] if fits else [1, 3])
    assert stream.skipped == ({} if fits else {"too_long": 1})


@given(
    st.lists(st.binary(max_size=6).map(lambda it: it.replace(b"\n", b"")), max_size=30), st.integers(1, 40)
)
def test_blocks_are_the_lines_whatever_is_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], limit: int
) -> None:
    log = tmp_path_factory.mktemp("blocks") / "log"
    log.write_bytes(b"".join(line + b"\n" for line in lines))
    stream = Stream(os.open(log, os.O_RDONLY), "log", Skipped())
    got = [line for block in blocks(stream, limit) for line in block.lines()]
    stream.close()
    expected = [(number, line.rpartition(b"\0")[2]) for number, line in enumerate(lines, 1)]
    assert [(it.number, it.data) for it in got if it.data] == [it for it in expected if it[1]]
