"""Small files: never waited for, and replaced as a whole."""

import json
import os
import socket
import stat

import pytest

from train_ledger.small_files import parsed_json, read_small, write_atomically


def test_a_reader_of_a_replaced_file_never_sees_a_part(tmp_path):
    file = tmp_path / "f.json"
    write_atomically(file, json.dumps({"a": 1}).encode())
    with open(file, "rb") as reader:
        write_atomically(file, b"x" * 100_000)
        assert json.loads(reader.read()) == {"a": 1}
    assert file.stat().st_size == 100_000


def test_a_failed_replacement_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    file = tmp_path / "f"
    write_atomically(file, b"old")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def _folder(path):
    path.mkdir()


def _socket(path):
    with socket.socket(socket.AF_UNIX) as here:
        here.bind(str(path))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "is a FIFO, but a file is wanted"),
        (_folder, "is a folder, but a file is wanted"),
        (_socket, "is a socket, but a file is wanted"),
        (lambda path: path.symlink_to("/dev/zero"), "is a device, but a file is wanted"),
        (lambda path: path.symlink_to("nowhere"), "is a link to a file that is not there"),
        (lambda path: path.write_bytes(b"x" * 101), "is larger than 0 MiB"),
    ],
)
def test_what_is_no_small_file_is_named_and_never_waited_for(tmp_path, monkeypatch, make, why):
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    make(path := tmp_path / "f") if make is not _socket else _socket(path := type(tmp_path)("f"))
    with pytest.raises(OSError, match=why) as refused:
        read_small(path, limit_bytes=100)
    assert not isinstance(refused.value, FileNotFoundError)


def test_a_small_file_is_read_and_a_missing_one_is_missing(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 100)
    assert read_small(tmp_path / "f", limit_bytes=100) == b"x" * 100
    with pytest.raises(FileNotFoundError):
        read_small(tmp_path / "g")


def test_json_that_nests_too_deeply_is_no_json():
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed_json("[" * 100_000)


def test_half_a_character_becomes_a_question_mark_and_two_halves_stay_one():
    assert parsed_json(r'{"a\ud800": ["\ud83d\ude00", "\udc00b", NaN]}').keys() == {"a?"}
    assert parsed_json(rb'["\ud83d\ude00", "\uDC00b", 12345678901234567890, 0.1]') == [
        "\N{GRINNING FACE}",
        "?b",
        12345678901234567890,
        0.1,
    ]


@pytest.mark.parametrize("make", [os.mkfifo, _folder])
def test_what_is_no_file_is_not_replaced(tmp_path, make):
    """/dev/null is a device for everybody: root must not put a file in its place."""
    other = tmp_path / "other"
    make(other)
    kind = stat.S_IFMT(other.stat().st_mode)
    with pytest.raises(OSError, match="but a file is wanted"):
        write_atomically(other, b"x")
    assert stat.S_IFMT(other.stat().st_mode) == kind
    assert list(tmp_path.iterdir()) == [other]
