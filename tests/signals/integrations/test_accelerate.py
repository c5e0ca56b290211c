"""The tracker in loops with the real Accelerate (accelerate_training.py)."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from signals.integrations.trainings import events, lines, numbers, order, run_script, steps
from train_ledger.signals.integrations.accelerate import TrackerHooks

absent = pytest.mark.skipif(not find_spec("accelerate"), reason="accelerate is absent")


@pytest.mark.slow
@absent
class TestReal:
    def test_each_step_that_is_logged_is_a_line(self, tmp_path: Path) -> None:
        ran = run_script("accelerate_training.py", tmp_path / "run", tmp_path / "losses")
        assert ran.returncode == 0, ran.stderr
        losses = json.loads((tmp_path / "losses.rank_0").read_bytes())
        written = steps(tmp_path / "run")
        assert [line["step"] for line in written] == [1, 2, 3, 3, 4, 5, 6]
        assert [line["loss"] for line in written if "loss" in line] == losses
        assert written[3]["eval_loss"] == 0.5
        assert all("on_the_gpu" not in line for line in written)
        assert json.loads((tmp_path / "run" / "run.json").read_bytes())["config"] == {
            "learning_rate": 0.1,
            "layers": 2,
        }
        told = order(tmp_path / "run")
        assert told.index("eval_start") < told.index("eval_end") < told.index("4")
        assert told[-1] == "run_end"

    def test_every_rank_has_a_heartbeat_and_losses_are_the_same(self, tmp_path: Path) -> None:
        for run in (str(tmp_path / "run"), "-"):
            ran = run_script("accelerate_training.py", run, tmp_path / f"losses{run == '-'}", ranks=2)
            assert ran.returncode == 0, ran.stderr
        for rank in (0, 1):
            assert sorted(set(numbers(tmp_path / "run", rank))) == [1, 2, 3, 4, 5, 6]
            assert lines(tmp_path / "run", rank)[0]["world_size"] == 2
            told = order(tmp_path / "run", rank)
            assert told.index("4") < told.index("ckpt_start") < told.index("ckpt_saved") < told.index("5")
            assert told.index("6") < told.index("ckpt_loaded") < told.index("run_end")
            assert [event["step"] for event in events(tmp_path / "run", "ckpt_saved", rank)] == [4]
            with_and_without = [tmp_path / f"losses{off}.rank_{rank}" for off in (True, False)]
            assert with_and_without[0].read_bytes() == with_and_without[1].read_bytes()

    def test_a_run_directory_that_cannot_be_written_changes_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        ran = run_script("accelerate_training.py", tmp_path / "file" / "run", tmp_path / "losses")
        assert ran.returncode == 0, ran.stderr
        assert len(json.loads((tmp_path / "losses.rank_0").read_bytes())) == 6


def test_a_log_without_a_step_is_the_next_one(tmp_path: Path) -> None:
    tracker = TrackerHooks(tmp_path)
    for loss in (3.0, 2.0):
        tracker.log({"loss": loss})
    tracker.finish()
    assert [(line["step"], line["loss"]) for line in steps(tmp_path)] == [(1, 3.0), (2, 2.0)]


def test_a_step_that_is_no_number_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    tracker = TrackerHooks(tmp_path)
    tracker.log({"loss": 1.0}, step="one")  # type: ignore[arg-type]
    tracker.log({"loss": 1.0}, step=2)
    tracker.finish()
    assert numbers(tmp_path) == [2]


def test_a_run_json_that_cannot_be_merged_is_told(tmp_path: Path) -> None:
    tracker = TrackerHooks(tmp_path)
    (tmp_path / "run.json").write_text("no json")
    tracker.store_init_configuration({"lr": 0.1})
    tracker.finish()
    assert [event["about"] for event in events(tmp_path, "warning")] == ["run.json"]


def test_trackers_that_are_begun_again_are_a_new_attempt(tmp_path: Path) -> None:
    tracker = TrackerHooks(tmp_path)
    tracker.start()
    tracker.log({}, step=1)
    tracker.finish()
    tracker.start()
    tracker.log({}, step=1)
    tracker.finish()
    assert [(line["attempt"], line["step"]) for line in steps(tmp_path)] == [(0, 1), (1, 1)]
