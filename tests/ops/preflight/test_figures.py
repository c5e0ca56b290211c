"""What ranks write is read, and what is none of theirs is refused with its name."""

import json

import pytest

from train_ledger.ops.preflight.figures import read_figures, read_steps
from train_ledger.ops.preflight.records import PreflightError

ENVIRONMENT = {
    "host": "n0",
    "ranks": 2,
    "backend": "gloo",
    "device": "cpu",
    "recorder": [["note", "kill grace", "fine"]],
}


def test_a_rank_that_did_one_stage_alone(tmp_path):
    told = {
        "environment": ENVIRONMENT,
        "tamper": {"planted": 1, "before": [], "after": [1]},
        "of_tomorrow": 1,
    }
    (tmp_path / "rank_00001.json").write_text(json.dumps(told))
    (tmp_path / "rank_map.json").write_text("no figures")
    found = read_figures(tmp_path)
    assert list(found) == [1]
    assert found[1].tamper.after == (1,)
    assert found[1].gpu is None


def test_a_file_that_is_none_of_ours_is_named(tmp_path):
    (tmp_path / "rank_00000.json").write_text('{"environment": 7}')
    with pytest.raises(PreflightError, match="rank_00000"):
        read_figures(tmp_path)


def test_no_folder_has_no_figures(tmp_path):
    assert read_figures(tmp_path / "gone") == {}


def test_a_line_that_a_killed_rank_did_not_finish_is_left_out(tmp_path):
    lines = '{"step": 1, "loss": "0x1p+1", "data": 7}\n{"step": 2, "lo'
    (tmp_path / "steps_0.rank_00000.jsonl").write_text(lines)
    assert read_steps(tmp_path, 0, [0, 1]) == {0: {1: ("0x1p+1", 7)}}
