"""Whole lines in the file, whatever the file system does in between."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from train_ledger.signals.writing import sink
from train_ledger.signals.writing.sink import Sink


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "signals" / "rank_00000.jsonl"


@pytest.fixture
def small_tmpfs(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def cut_writes(monkeypatch: pytest.MonkeyPatch, *accepted: int) -> None:
    """The next writes take so many bytes and no more, as on a disk that fills up."""
    left = list(accepted)
    write = os.write

    def cut(fd: int, data: bytes) -> int:
        return write(fd, data[: left.pop(0)]) if left else write(fd, data)

    monkeypatch.setattr(sink.os, "write", cut)


def test_makes_the_folder_and_appends(path: Path) -> None:
    assert Sink(path).write(b"one\n") == b""
    assert Sink(path).write(b"two\n") == b""
    assert path.read_bytes() == b"one\ntwo\n"


def test_goes_on_where_a_full_disk_cut_a_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_writes(monkeypatch, 6)
    file = Sink(path)
    rest = file.write(b"one\ntwo\n")
    assert file.trouble is not None
    assert file.write(rest) == b""
    assert file.trouble is None
    assert path.read_bytes() == b"one\ntwo\n"


def test_leaves_no_torn_line_behind_when_the_file_was_replaced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "_IDENTITY_CHECK_S", 0.0)
    monkeypatch.setattr(sink, "_REOPEN_S", 0.0)
    cut_writes(monkeypatch, 6)
    file = Sink(path)
    rest = file.write(b"one\ntwo\n")
    path.rename(path.with_suffix(".jsonl.1"))
    assert file.write(rest + b"three\n") == b""
    assert path.read_bytes() == b"three\n"
    assert file.lines_lost == 1


def test_begins_with_a_newline_after_a_writer_that_died_in_mid_line(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"t":1.0,"st')
    Sink(path).write(b"one\n")
    assert path.read_bytes() == b'{"t":1.0,"st\none\n'


def test_a_fifo_is_refused_and_not_waited_for(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    file = Sink(path)
    assert file.write(b"one\n") == b"one\n"
    assert file.trouble == f"{path}: is no regular file"


def test_a_folder_that_cannot_be_made_is_said_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "_REOPEN_S", 0.0)
    (tmp_path / "run").write_text("a file where the run directory should be")
    file = Sink(tmp_path / "run" / "signals" / "rank_00000.jsonl")
    assert file.write(b"one\n") == b"one\n"
    assert "Not a directory" in str(file.trouble)
    (tmp_path / "run").unlink()
    assert file.write(b"one\n") == b""
    assert file.trouble is None


def test_a_full_tmpfs_ends_in_whole_lines_once_there_is_room(small_tmpfs: Path) -> None:
    filler = small_tmpfs / "filler"
    filler.write_bytes(b"x" * 4096)
    path = small_tmpfs / "rank_00000.jsonl"
    file = Sink(path)
    rest = b"".join(b'{"step":%d}\n' % n for n in range(1000))
    wanted = rest
    rest = file.write(rest)
    assert file.write(rest) == rest  # not a byte more goes in
    assert file.trouble is not None
    subprocess.run(["mount", "-o", "remount,size=64k", str(small_tmpfs)], check=True)
    while rest:
        rest = file.write(rest)
    assert path.read_bytes() == wanted


def test_a_stale_handle_of_a_file_server_ends_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that was moved refuses whatever is asked of an open file; the name works again later."""
    monkeypatch.setattr(sink, "_REOPEN_S", 0.0)
    monkeypatch.setattr(sink, "_IDENTITY_CHECK_S", 0.0)
    file = Sink(path)
    assert file.write(b"one\n") == b""

    def stale(*_: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as gone:
        gone.setattr(sink.os, "write", stale)
        assert file.write(b"two\n") == b"two\n"
        gone.setattr(sink, "open_regular", lambda path, flags: os.open(path, flags))
        gone.setattr(sink.os, "fstat", stale)
        assert file.write(b"two\n") == b"two\n"
    assert file.trouble is not None
    assert file.write(b"two\n") == b""
    assert path.read_bytes() == b"one\ntwo\n"
