"""The callback in trainings by the real Lightning (lightning_trainings.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from signals.integrations.trainings import events, lines, numbers, order, run_script, steps
from train_ledger.signals.integrations.lightning import LightningHooks

absent = pytest.mark.skipif(not find_spec("lightning"), reason="lightning is absent")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lightning")
    ran = run_script("lightning_trainings.py", folder)
    assert ran.returncode == 0, ran.stderr
    return folder


def results(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "results.json").read_bytes())
    return read


@pytest.mark.slow
@absent
class TestReal:
    def test_a_line_a_step_of_the_optimizer_not_a_batch(self, trained: Path) -> None:
        assert numbers(trained / "run") == [1, 2, 3, 4, 5, 6]
        losses = results(trained)["with"][0]
        assert [line["loss"] for line in steps(trained / "run")] == [
            pytest.approx((first + second) / 2, rel=1e-6)
            for first, second in zip(losses[::2], losses[1::2], strict=True)
        ]
        assert [line["lr"] for line in steps(trained / "run")][:3] == pytest.approx([0.1, 0.01, 0.001])
        for line in steps(trained / "run")[1:]:
            spent = line["data_wait_s"] + line["fwd_s"] + line["bwd_s"] + line["opt_s"]
            assert min(line["fwd_s"], line["bwd_s"], line["opt_s"]) > 0
            assert spent < line["step_time_s"]

    def test_losses_and_weights_are_the_same_to_the_last_bit(self, trained: Path) -> None:
        assert results(trained)["with"] == results(trained)["without"]

    def test_a_run_directory_that_cannot_be_written_changes_nothing(self, trained: Path) -> None:
        assert results(trained)["unwritable"] == results(trained)["without"]

    def test_several_optimizers_count_as_the_trainer_counts(self, trained: Path) -> None:
        assert numbers(trained / "two") == list(range(2, 25, 2))

    def test_validation_is_an_evaluation_and_the_sanity_check_no_hang(self, trained: Path) -> None:
        told = [word for word in order(trained / "validated") if not word.startswith("ckpt_")]
        evaluation = ["eval_start", "phase_start evaluation", "phase_end evaluation", "eval_end"]
        assert told[2:6] == evaluation
        assert told[told.index("6") + 2 :][:4] == evaluation
        assert told.count("eval_end") == 3
        assert "warning" not in told

    def test_saves_have_their_true_durations(self, trained: Path) -> None:
        saved = [event for event in events(trained / "validated", "ckpt_saved") if event["attempt"] == 0]
        assert [event["step"] for event in saved] == [4, 8, 12]
        assert all(0 < event["duration_s"] < 5 and event["durable"] for event in saved)

    def test_what_the_loggers_are_given_stands_with_its_step(self, trained: Path) -> None:
        first = [line for line in steps(trained / "validated") if line["attempt"] == 0]
        norms = {line["step"]: line["grad_norm"] for line in first if "grad_norm" in line}
        losses = {line["step"]: line["loss"] for line in first if "loss" in line}
        assert norms == {step: 2 * losses[step] for step in (3, 6, 9, 12)}

    def test_the_trainer_is_left_as_it_was(self, trained: Path) -> None:
        _, _, loggers, save_is_wrapped = results(trained)["validated"]
        assert (loggers, save_is_wrapped) == (1, False)

    def test_a_resumed_training_goes_on_where_the_checkpoint_stood(self, trained: Path) -> None:
        second = [line for line in steps(trained / "validated") if line["attempt"] == 1]
        assert [line["step"] for line in second] == list(range(9, 25))
        assert [event["step"] for event in events(trained / "validated", "ckpt_loaded")] == [8]

    def test_an_exception_is_told_with_its_phase_and_the_run_does_not_end_well(self, trained: Path) -> None:
        (raised,) = events(trained / "failed", "exception")
        assert (raised["type"], raised["step"], raised["phase"]) == ("ValueError", 5, "forward")
        assert events(trained / "failed", "run_end") == []


@pytest.mark.slow
@absent
def test_ranks_that_lightning_starts_itself_know_who_they_are(tmp_path: Path) -> None:
    ran = run_script("lightning_ranks.py", tmp_path)
    assert ran.returncode == 0, ran.stderr
    for rank in (0, 1):
        assert numbers(tmp_path, rank) == [1, 2, 3, 4, 5, 6]
        assert lines(tmp_path, rank)[0]["world_size"] == 2
        assert {line["attempt"] for line in lines(tmp_path, rank)} == {0}


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("pytorch_lightning"), reason="pytorch_lightning is absent")
def test_the_other_distribution_of_lightning_has_its_own_callback() -> None:
    script = """
import pytorch_lightning
from train_ledger.signals.integrations.lightning import TrainLedgerCallback
print(issubclass(TrainLedgerCallback, pytorch_lightning.Callback))
"""
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert printed.stdout.split() == ["True"]


def test_a_trainer_that_is_not_as_we_know_it_is_not_harmed(tmp_path: Path) -> None:
    hooks = LightningHooks(tmp_path)
    strange = SimpleNamespace(state=SimpleNamespace(fn="fit"))
    hooks.setup(strange, None, "fit")
    hooks.on_train_batch_end(strange, None, None, None, 0)
    hooks.on_train_batch_end(strange, None, None, None, 1)
    hooks.teardown(strange, None, "fit")
    assert [event["message"].partition(":")[0] for event in events(tmp_path, "warning")] == [
        "setup",
        "on_train_batch_end",
    ]
    assert order(tmp_path)[-1] == "run_end"


def test_what_the_script_has_put_on_the_objects_is_put_back(tmp_path: Path) -> None:
    calls: list[str] = []

    class Object:
        def save_checkpoint(self, path: str) -> None: ...
        def start(self, action_name: str) -> None: ...
        def stop(self, action_name: str) -> None: ...
        def log_metrics(self, metrics: dict[str, float], step: int) -> None: ...

    trainer: Any = Object()
    trainer.state, trainer.profiler, trainer.loggers = SimpleNamespace(fn="fit"), Object(), [Object()]
    trainer.global_step = 1
    its_own = trainer.profiler.start = lambda action_name: calls.append(action_name)
    loggers, before = trainer.loggers, [dict(vars(trainer.profiler)), dict(vars(trainer.loggers[0]))]
    hooks = LightningHooks(tmp_path)
    hooks.setup(trainer, None, "fit")
    assert trainer.loggers is loggers, "who goes through the loggers finds those of the script"
    trainer.profiler.start(action_name="x.train_dataloader_next")
    trainer.profiler.stop(action_name="x.train_dataloader_next")
    hooks.teardown(trainer, None, "fit")
    assert calls == ["x.train_dataloader_next"]
    assert trainer.profiler.start is its_own
    assert [vars(trainer.profiler), vars(trainer.loggers[0])] == before
    assert "save_checkpoint" not in vars(trainer)
    assert events(tmp_path, "warning") == []
