import os
from pathlib import Path

import pytest

from train_ledger.run_dir import (
    RunDir,
    RunDirError,
    users_folder,
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


def test_who_has_no_home_has_no_folder_there(monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user that no table knows
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert users_folder("XDG_STATE_HOME", ".local/state") is None
    monkeypatch.setenv("XDG_STATE_HOME", "/var/lib")
    assert users_folder("XDG_STATE_HOME", ".local/state") == Path("/var/lib/train-ledger")
