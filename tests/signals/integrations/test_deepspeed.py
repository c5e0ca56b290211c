"""The engine of the real DeepSpeed, watched (deepspeed_training.py); a stand-in for what it cannot show."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from signals.integrations.trainings import events, lines, numbers, order, run_script, steps
from train_ledger.signals.integrations.deepspeed import watch

absent = pytest.mark.skipif(not find_spec("deepspeed"), reason="deepspeed is absent")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deepspeed")
    ran = run_script("deepspeed_training.py", folder, "engine", ranks=2)
    assert ran.returncode == 0, ran.stderr
    return folder


def noted(folder: Path, name: str, rank: int) -> Any:
    return json.loads((folder / f"{name}.rank_{rank}.json").read_bytes())


@pytest.mark.slow
@absent
class TestReal:
    @pytest.mark.parametrize("rank", [0, 1])
    def test_a_line_a_step_at_the_boundaries_of_accumulation_on_every_rank(
        self, trained: Path, rank: int
    ) -> None:
        assert numbers(trained / "run", rank) == [1, 2, 3, 4]
        of_batches = noted(trained, "with", rank)
        means = [sum(pair) / 2 for pair in zip(of_batches[::2], of_batches[1::2], strict=True)]
        written = steps(trained / "run", rank)
        assert [line["loss"] for line in written] == pytest.approx(means)
        assert [line["lr"] for line in written] == [0.1] * 4
        assert [line["consumed_samples"] for line in written] == [8, 16, 24, 32]
        for line in written[1:]:
            assert min(line["fwd_s"], line["bwd_s"], line["opt_s"]) > 0
        assert lines(trained / "run", rank)[0]["world_size"] == 2

    @pytest.mark.parametrize("rank", [0, 1])
    def test_losses_are_the_same_to_the_last_bit(self, trained: Path, rank: int) -> None:
        assert noted(trained, "with", rank) == noted(trained, "without", rank)
        assert noted(trained, "unwritable", rank) == noted(trained, "without", rank)

    @pytest.mark.parametrize("rank", [0, 1])
    def test_the_engines_own_exceptions_come_through(self, trained: Path, rank: int) -> None:
        assert noted(trained, "raised", rank).startswith("save_dir must be")

    def test_saves_and_loads_are_told_with_their_durations(self, trained: Path) -> None:
        told = order(trained / "run")
        assert told.index("3") < told.index("ckpt_start") < told.index("ckpt_saved") < told.index("4")
        (saved,) = events(trained / "run", "ckpt_saved")
        assert saved["step"] == 3
        assert 0 < saved["duration_s"] < 5
        (loaded,) = events(trained / "resumed", "ckpt_loaded")  # and none for the folder without a checkpoint
        assert loaded["step"] == 3
        assert 0 < loaded["duration_s"] < 5
        assert numbers(trained / "resumed") == [4]

    def test_a_pipeline_is_told_by_its_train_batch(self, tmp_path: Path) -> None:
        ran = run_script("deepspeed_training.py", tmp_path, "pipeline", ranks=2)
        assert ran.returncode == 0, ran.stderr
        for rank in (0, 1):
            assert numbers(tmp_path / "pipeline", rank) == [1, 2, 3, 4]
            assert all(line["loss"] > 0 for line in steps(tmp_path / "pipeline", rank))


class Engine:
    """As much of an engine as is asked for."""

    def __init__(self, scale: float = 8.0) -> None:
        self.global_steps = self.skipped_steps = self.global_samples = 0
        self.training = True
        self.optimizer = SimpleNamespace(cur_scale=scale)
        self.saved = True

    def forward(self, batch: object) -> object:
        return batch

    def backward(self, loss: object) -> object:
        return loss

    def step(self) -> str:
        self.global_steps += 1
        return "stepped"

    def save_checkpoint(self, folder: str) -> bool:
        if not folder:
            raise OSError("no space")
        return self.saved

    def load_checkpoint(self, folder: str) -> tuple[None, None]:
        return None, None

    def get_lr(self) -> list[float]:
        return [0.1]

    def get_global_grad_norm(self) -> float:
        return 1.5

    def fp16_enabled(self) -> bool:
        return True


def test_skipped_steps_and_the_loss_scale_are_told(tmp_path: Path) -> None:
    engine: Any = Engine()
    with watch(engine, tmp_path):
        engine.step()
        engine.skipped_steps, engine.optimizer.cur_scale = 1, 4.0
        engine.step()
    told = [(line["skipped"], line["loss_scale"], line["grad_norm"]) for line in steps(tmp_path)]
    assert told == [(0, 8.0, 1.5), (1, 4.0, 1.5)]


def test_a_save_that_failed_is_told_and_its_exception_passes(tmp_path: Path) -> None:
    engine: Any = Engine()
    with watch(engine, tmp_path):
        engine.step()
        with pytest.raises(OSError, match="no space"):
            engine.save_checkpoint("")
        engine.saved = False
        assert engine.save_checkpoint("/somewhere") is False
    first, second = events(tmp_path, "ckpt_failed")
    assert (first["step"], first["error"]) == (1, "OSError: no space")
    assert "did not save" in second["error"]


def test_what_an_engine_of_another_version_lacks_harms_nothing(tmp_path: Path) -> None:
    engine: Any = Engine()
    engine.get_lr = None
    with watch(engine, tmp_path):
        assert [engine.step(), engine.step()] == ["stepped", "stepped"]
        assert engine.backward(3) == 3
    assert len(events(tmp_path, "warning")) == 1
    assert events(tmp_path, "warning")[0]["message"].startswith("_tell_step: TypeError")


def test_a_loss_that_the_script_knows_goes_with_the_step(tmp_path: Path) -> None:
    engine: Any = Engine()
    with watch(engine, tmp_path) as monitor:
        monitor.log(loss=2.5)
        engine.step()
    assert steps(tmp_path)[0]["loss"] == 2.5


def test_the_loss_that_deepspeed_fetches_for_its_own_monitor_is_taken(tmp_path: Path) -> None:
    engine: Any = Engine()
    handed = []
    engine.monitor = SimpleNamespace(enabled=True, write_events=handed.append)
    with watch(engine, tmp_path):
        engine.monitor.write_events([("Train/Samples/train_loss", 2.5, 8)])
        engine.monitor.write_events([("Train/Samples/lr", 0.1, 8)])
        engine.step()
        engine.step()
    assert [line.get("loss") for line in steps(tmp_path)] == [2.5, None]
    assert len(handed) == 2
