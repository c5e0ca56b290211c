import json
import os
import socket
import stat
from pathlib import Path

import pytest

from train_ledger.run_dir import (
    RunDir,
    RunDirError,
    parsed_json,
    read_small,
    users_folder,
    write_atomically,
)


def test_the_first_attempt_has_no_folder_of_its_own():
    run = RunDir(Path("/r"))
    assert run.comm_trace_of(5) == Path("/r/comm_traces/rank_5")
    assert run.comm_trace_of(5, attempt=2) == Path("/r/comm_traces/attempt_2/rank_5")
    assert run.stacks(1) == Path("/r/stacks/attempt_1")


def test_signal_files_are_found_with_their_ranks_and_other_files_are_not(tmp_path):
    run = RunDir(tmp_path)
    run.signals.mkdir()
    for name in (
        "rank_00010.jsonl",
        "rank_00002.jsonl",
        "rank_00002.jsonl.1",
        "notes.txt",
        "rank_x.jsonl",
        "rank_٣.jsonl",
    ):
        (run.signals / name).touch()
    assert [(rank, path.name) for rank, path in run.signal_files()] == [
        (2, "rank_00002.jsonl"),
        (2, "rank_00002.jsonl.1"),
        (10, "rank_00010.jsonl"),
    ]


def test_merging_a_key_keeps_those_that_it_does_not_know(tmp_path):
    run = RunDir(tmp_path)
    run.run_json.write_text('{"run": "r42", "their_key": [1, 2]}')
    run.merge_run({"world_size": 8})
    assert run.read_run() == {"run": "r42", "their_key": [1, 2], "world_size": 8}


def test_a_missing_run_json_is_empty_and_a_broken_one_is_named(tmp_path):
    run = RunDir(tmp_path)
    assert run.read_run() == {}
    run.run_json.write_text("[1]")
    with pytest.raises(RunDirError, match=r"run\.json: must be one JSON object"):
        run.read_run()
    run.run_json.write_text("{")
    with pytest.raises(RunDirError, match=r"run\.json"):
        run.read_run()


def test_a_path_that_is_no_folder_is_told_in_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunDirError, match="is a file"):
        RunDir.existing(tmp_path / "file")
    with pytest.raises(RunDirError, match="no such run directory"):
        RunDir.existing(tmp_path / "nowhere")


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


def test_the_name_of_a_run_can_be_written_down_whatever_its_folder_is_called(tmp_path):
    (tmp_path / "r\udcff").mkdir()
    assert RunDir(tmp_path / "r\udcff").name_in({}) == "r?"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.write_text('{"a":' * 100_000)])
def test_a_run_json_that_cannot_be_read_is_one_sentence(tmp_path, make):
    run = RunDir(tmp_path)
    make(run.run_json)
    with pytest.raises(RunDirError, match=r"run\.json: is .*; mend or remove the file"):
        run.read_run()


def test_a_run_is_called_as_it_says_itself_else_as_its_folder(tmp_path):
    run = RunDir(tmp_path / "r42")
    assert run.name_in({"run": "big"}) == "big"
    assert run.name_in({}) == run.name_in({"run": ""}) == "r42"
    assert run.name_in({"run": ["x"]}) == "r42"


def test_logs_in_a_folder_whose_name_no_folder_can_have(tmp_path):
    run = RunDir(tmp_path)
    run.run_json.write_text('{"log_dir": "lo\\u0000gs"}')
    assert run.log_folders() == (run.logs,)


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


def test_who_has_no_home_has_no_folder_there(monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user that no table knows
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert users_folder("XDG_STATE_HOME", ".local/state") is None
    monkeypatch.setenv("XDG_STATE_HOME", "/var/lib")
    assert users_folder("XDG_STATE_HOME", ".local/state") == Path("/var/lib/train-ledger")
