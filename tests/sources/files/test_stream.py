"""One open file, read in blocks of whole lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.sources.files.positions import Tail
from train_ledger.sources.files.stream import LINE_LIMIT_BYTES, Block, Skipped, Stream


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


class TestWhatIsCut:
    def test_an_unfinished_line_that_is_cut_off_leaves_the_lines_before_it(
        self, log: Path, stream: Stream
    ) -> None:
        """As a writer does that mends its file when it starts again."""
        log.write_bytes(b'{"step": 1}\n{"st')
        assert blocks(stream) == [Block("rank.jsonl", 1, b'{"step": 1}')]
        os.truncate(log, 12)
        with log.open("ab") as writer:
            writer.write(b'{"event": "run_start"}\n')
        assert blocks(stream) == [Block("rank.jsonl", 2, b'{"event": "run_start"}')]
        assert stream.skipped == {"torn": 1}

    def test_an_unfinished_line_that_is_written_anew_is_read_as_it_is_now(
        self, log: Path, stream: Stream
    ) -> None:
        log.write_bytes(b"a\nhalf a l")
        blocks(stream)
        log.write_bytes(b"a\nanother one\n")
        assert blocks(stream) == [Block("rank.jsonl", 2, b"another one")]

    def test_a_cut_between_look_and_read_hands_on_nothing_of_the_new_content(
        self, log: Path, stream: Stream
    ) -> None:
        log.write_bytes(b"old %04d\n" % 1 * 100)
        blocks(stream)
        with log.open("ab") as writer:
            writer.write(b"old more\n")
        assert stream.look()
        log.write_bytes(b"".join(b"new %04d\n" % number for number in range(200)))
        assert stream.read_blocks(1 << 20) == []
        (block,) = blocks(stream)
        assert block.data.startswith(b"new 0000\nnew 0001")

    def test_bytes_that_a_server_promised_are_asked_for_until_they_come(
        self, log: Path, stream: Stream, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An NFS client may know a size before it has the data; no further change need follow."""
        log.write_bytes(b"last words\n")
        with monkeypatch.context() as cached:
            cached.setattr(os, "pread", lambda fd, length, offset: b"")
            assert stream.look()
            assert stream.read_blocks(100) == []
        assert stream.unread_bytes == 0, "who waits for the end of the file must not wait for ever"
        assert blocks(stream) == [Block("rank.jsonl", 1, b"last words")]

    def test_a_time_that_steps_back_is_a_change_like_any_other(self, log: Path, stream: Stream) -> None:
        log.write_bytes(b"a\n")
        blocks(stream)
        with log.open("ab") as writer:
            writer.write(b"b\n")
        os.utime(log, (1, 1))
        assert blocks(stream) == [Block("rank.jsonl", 2, b"b")]


def numbered(lines: range) -> bytes:
    return b"".join(b'{"step": %d}\n' % number for number in lines)


class TestTail:
    def test_the_middle_of_a_large_file_is_left_out(self, log: Path, stream: Stream) -> None:
        log.write_bytes(numbered(range(100_000)))
        stream.look()
        stream.start_at_tail(Tail(last_bytes=1000, head_bytes=100))
        lines = [line for block in blocks(stream) for line in block.lines()]
        steps = [int(line.data[9:-1]) for line in lines]
        head = 8  # lines of twelve bytes
        assert steps[:head] == list(range(head))
        assert steps[head:] == list(range(steps[head], 100_000))
        assert stream.left_out_bytes == len(numbered(range(head, steps[head])))
        first = lines[head]
        assert log.read_bytes()[first.since :].startswith(first.data)
        assert first.place == f"rank.jsonl@{first.since}:1"
        assert lines[-1].number == len(steps) - head

    def test_a_marked_line_above_the_tail_is_where_it_begins(self, log: Path, stream: Stream) -> None:
        start = b'{"event": "run_start", "attempt": 1}\n'
        log.write_bytes(numbered(range(9000)) + start + numbered(range(9000, 9100)))
        stream.look()
        stream.start_at_tail(Tail(1000, 4000, b'"run_start"', head_bytes=1))
        lines = [line.data for block in blocks(stream) for line in block.lines()]
        assert lines == (start + numbered(range(9000, 9100))).split(b"\n")[:-1]

    def test_a_small_file_is_read_whole(self, log: Path, stream: Stream) -> None:
        log.write_bytes(numbered(range(100)))
        stream.look()
        stream.start_at_tail(Tail(1000, 4000, b'"run_start"'))
        assert len([line for block in blocks(stream) for line in block.lines()]) == 100
        assert stream.left_out_bytes == 0


class TestPosition:
    @pytest.mark.parametrize("cut", [0, 5, 12, 17])
    def test_another_reader_goes_on_where_this_one_stopped(self, log: Path, stream: Stream, cut: int) -> None:
        whole = numbered(range(5))
        log.write_bytes(whole[:cut])
        first = blocks(stream)
        second = Stream(os.open(log, os.O_RDONLY), "rank.jsonl", Skipped())
        assert second.resume(stream.position((1, 2)))
        log.write_bytes(whole)
        lines = [line for block in first + blocks(second) for line in block.lines()]
        assert [(line.number, line.data) for line in lines] == [
            (number, b'{"step": %d}' % (number - 1)) for number in range(1, 6)
        ]
        second.close()

    @pytest.mark.parametrize("unfinished", [b'{"st', b"x" * 200])
    def test_whole_lines_are_not_read_again_where_an_unfinished_one_was_cut_off_meanwhile(
        self, log: Path, stream: Stream, unfinished: bytes
    ) -> None:
        log.write_bytes(numbered(range(2)) + unfinished)
        blocks(stream)
        log.write_bytes(numbered(range(2)) + b"[3]\n")
        second = Stream(os.open(log, os.O_RDONLY), "rank.jsonl", Skipped())
        assert second.resume(stream.position((1, 2)))
        assert blocks(second) == [Block("rank.jsonl", 3, b"[3]")]
        second.close()

    @pytest.mark.parametrize(
        "content", [b'{"step": 0}\n{"step": 9}\n', b"", b'{"step": 0}\n', b'{"stap": 0}\n{"step": 1}\n']
    )
    def test_no_reader_goes_on_in_a_file_that_holds_something_else(
        self, log: Path, stream: Stream, content: bytes
    ) -> None:
        """The same inode, the same size, the same first line: none of them proves anything."""
        log.write_bytes(numbered(range(2)))
        blocks(stream)
        position = stream.position((1, 2))
        log.write_bytes(content)
        second = Stream(os.open(log, os.O_RDONLY), "rank.jsonl", Skipped())
        assert not second.resume(position)
        second.close()
