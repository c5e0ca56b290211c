"""The callback in trainings by the real Trainer (hf_trainings.py), and the hooks in the hands of a trainer of
another version."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from signals.integrations.trainings import events, lines, numbers, order, run_script, steps
from signals.scripts import run_to_end
from train_ledger.signals.integrations.hf import TrainerHooks

real = [pytest.mark.slow, pytest.mark.skipif(not find_spec("transformers"), reason="transformers is absent")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hf")
    ran = run_script("hf_trainings.py", folder)
    assert ran.returncode == 0, ran.stderr
    return folder


class TestReal:
    pytestmark = real

    def test_a_line_a_step_of_the_optimizer_with_what_the_trainer_logged(self, trained: Path) -> None:
        history, _ = json.loads((trained / "with.json").read_bytes())
        written = steps(trained / "run")
        assert numbers(trained / "run") == list(range(1, 9))
        assert [line["loss"] for line in written] == [row["loss"] for row in history if "loss" in row]
        assert [line["grad_norm"] for line in written] == [
            row["grad_norm"] for row in history if "loss" in row
        ]
        assert written[0]["lr"] == 5e-5
        for line in written[1:]:
            assert 0 < line["data_wait_s"] + line["opt_s"] < line["step_time_s"]

    def test_losses_and_weights_are_the_same_to_the_last_bit(self, trained: Path) -> None:
        assert (trained / "with.json").read_bytes() == (trained / "without.json").read_bytes()

    def test_a_run_directory_that_cannot_be_written_changes_nothing(self, trained: Path) -> None:
        assert (trained / "unwritable.json").read_bytes() == (trained / "without.json").read_bytes()

    def test_it_begins_and_ends(self, trained: Path) -> None:
        told = order(trained / "run")
        assert told[0] == "run_start"
        assert told[-1] == "run_end"
        assert "warning" not in told

    def test_evaluations_and_saves_are_phases_after_the_line_of_their_step(self, trained: Path) -> None:
        told = order(trained / "evaluated")
        evaluation = ["eval_start", "phase_start evaluation", "phase_end evaluation", "eval_end"]
        save = ["ckpt_start", "phase_start checkpoint_save", "phase_end checkpoint_save", "ckpt_saved"]
        assert told[2:6] == evaluation  # eval_on_start
        assert told[7:] == [*"1234", *evaluation, *save, *"5678", *evaluation, *save, "run_end"]
        saved = events(trained / "evaluated", "ckpt_saved")
        assert [event["step"] for event in saved] == [4, 8]
        assert all(event["duration_s"] >= 1 for event in saved)  # a save takes a second
        assert steps(trained / "evaluated")[4]["ckpt_s"] == pytest.approx(saved[0]["duration_s"], rel=0.1)

    def test_what_is_logged_for_a_whole_epoch_stands_with_its_last_step(self, trained: Path) -> None:
        assert numbers(trained / "epochs") == [1, 2, 3, 4, 4, 5, 6, 7, 8, 8]
        assert ["loss" in line for line in steps(trained / "epochs")] == ([False] * 4 + [True]) * 2
        assert order(trained / "epochs").count("eval_end") == 2
        assert [event["step"] for event in events(trained / "epochs", "ckpt_saved")] == [4, 8]

    def test_a_save_that_could_not_be_foreseen_has_no_duration_and_is_no_wait_for_data(
        self, trained: Path
    ) -> None:
        (saved,) = events(trained / "untimely", "ckpt_saved")
        assert saved["step"] == 3
        assert "duration_s" not in saved
        assert all(line["data_wait_s"] < 0.5 for line in steps(trained / "untimely")[1:])  # it takes a second

    def test_tokens_after_a_resume_are_those_of_this_session(self, trained: Path) -> None:
        first, second = (
            [line for line in steps(trained / "resumed") if line["attempt"] == n] for n in (0, 1)
        )
        assert [line["step"] for line in first + second] == list(range(1, 9))
        assert second[0]["consumed_tokens"] == first[-1]["consumed_tokens"] + 32
        for line in first[1:] + second[1:]:
            assert line["tps"] == pytest.approx(32 / line["step_time_s"], rel=1e-6)
        assert [event["step"] for event in events(trained / "resumed", "ckpt_loaded")] == [4]

    def test_it_is_a_callback_that_can_be_pickled(self) -> None:
        import pickle

        from transformers import TrainerCallback

        from train_ledger.signals.integrations.hf import TrainLedgerCallback

        assert issubclass(TrainLedgerCallback, TrainerCallback)
        assert pickle.loads(pickle.dumps(TrainLedgerCallback)) is TrainLedgerCallback


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("transformers"), reason="transformers is absent")
def test_every_rank_has_its_own_lines(tmp_path: Path) -> None:
    ran = run_script("hf_ranks.py", tmp_path, ranks=2)
    assert ran.returncode == 0, ran.stderr
    for rank in (0, 1):
        assert numbers(tmp_path, rank) == list(range(1, 6))
        assert lines(tmp_path, rank)[0]["world_size"] == 2
        seen = [line["consumed_tokens"] for line in steps(tmp_path, rank)]
        assert seen == [64, 128, 192, 256, 320]  # of both ranks, as the Trainer counts
        for line in steps(tmp_path, rank)[1:]:
            assert line["tps"] == pytest.approx(32 / line["step_time_s"], rel=1e-6)


def state(**values: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"global_step": 0, "num_input_tokens_seen": 0, **values})


CONTROL = SimpleNamespace(should_log=False, should_evaluate=False, should_save=False)
CPU = SimpleNamespace(type="cpu")
ARGUMENTS = SimpleNamespace(
    world_size=1, save_strategy="no", eval_on_start=False, logging_nan_inf_filter=True, device=CPU
)


def test_what_a_trainer_of_another_version_lacks_is_told_once_and_harms_nothing(tmp_path: Path) -> None:
    hooks = TrainerHooks(tmp_path)
    for step in range(1, 4):
        hooks.on_step_end(ARGUMENTS, SimpleNamespace(global_step=step), CONTROL)
    hooks.on_train_end(ARGUMENTS, state(), CONTROL)
    (warning,) = events(tmp_path, "warning")
    assert warning["about"] == "integration"
    assert "num_input_tokens_seen" in warning["message"]


def test_a_second_training_is_a_new_attempt(tmp_path: Path) -> None:
    hooks = TrainerHooks(tmp_path)
    for _ in range(2):
        hooks.on_train_begin(ARGUMENTS, state(), CONTROL)
        hooks.on_step_end(ARGUMENTS, state(global_step=1), CONTROL)
        hooks.on_train_end(ARGUMENTS, state(global_step=1), CONTROL)
    assert [(line["attempt"], line["step"]) for line in steps(tmp_path)] == [(0, 1), (1, 1)]


def test_a_training_begun_anew_from_an_earlier_step_is_a_new_attempt(tmp_path: Path) -> None:
    hooks = TrainerHooks(tmp_path)
    hooks.on_train_begin(ARGUMENTS, state(), CONTROL)
    for step in (1, 2):
        hooks.on_step_end(ARGUMENTS, state(global_step=step), CONTROL)
    hooks.on_train_begin(ARGUMENTS, state(), CONTROL)  # a batch size that did not fit is tried again, smaller
    hooks.on_step_end(ARGUMENTS, state(global_step=1), CONTROL)
    hooks.on_train_end(ARGUMENTS, state(global_step=1), CONTROL)
    assert [(line["attempt"], line["step"]) for line in steps(tmp_path)] == [(0, 1), (0, 2), (1, 1)]


def test_a_monitor_of_the_script_s_own_stays_open(tmp_path: Path) -> None:
    import train_ledger

    with train_ledger.start(tmp_path) as monitor:
        hooks = TrainerHooks(monitor)
        hooks.on_train_begin(ARGUMENTS, state(), CONTROL)
        hooks.on_step_end(ARGUMENTS, state(global_step=1), CONTROL)
        hooks.on_train_end(ARGUMENTS, state(global_step=1), CONTROL)
        monitor.step(2)
    assert numbers(tmp_path) == [1, 2]
    assert order(tmp_path)[-1] == "run_end"


def test_skipped_steps_are_counted(tmp_path: Path) -> None:
    hooks = TrainerHooks(tmp_path)
    hooks.on_train_begin(ARGUMENTS, state(), CONTROL)
    for step, skipped in enumerate((False, True, False, True), start=1):
        hooks.on_optimizer_step(
            ARGUMENTS, state(), CONTROL, optimizer=SimpleNamespace(step_was_skipped=skipped)
        )
        hooks.on_step_end(ARGUMENTS, state(global_step=step), CONTROL)
    hooks.on_train_end(ARGUMENTS, state(), CONTROL)
    assert [line.get("skipped", 0) for line in steps(tmp_path)] == [0, 1, 1, 2]


def test_a_wait_for_data_that_is_one_for_the_gpu_is_left_out(tmp_path: Path) -> None:
    unsynchronised = SimpleNamespace(
        **{**vars(ARGUMENTS), "logging_nan_inf_filter": False, "device": SimpleNamespace(type="cuda")}
    )
    for name, arguments in (("with", ARGUMENTS), ("without", unsynchronised)):
        hooks = TrainerHooks(tmp_path / name)
        hooks.on_train_begin(arguments, state(), CONTROL)
        hooks.on_epoch_begin(arguments, state(), CONTROL)
        hooks.on_step_begin(arguments, state(), CONTROL)
        hooks.on_step_end(arguments, state(global_step=1), CONTROL)
        hooks.on_train_end(arguments, state(global_step=1), CONTROL)
    assert "data_wait_s" in steps(tmp_path / "with")[0]
    assert "data_wait_s" not in steps(tmp_path / "without")[0]


FAILS = """
from types import SimpleNamespace as Of
from train_ledger.signals.integrations.hf import TrainerHooks
monitor.close()
hooks = TrainerHooks(monitor.run_dir.path)
arguments = Of(world_size=1, save_strategy="steps", eval_on_start=False, logging_nan_inf_filter=True)
hooks.on_step_end(
    arguments,
    Of(global_step=5, num_input_tokens_seen=0),
    Of(should_log=False, should_evaluate=False, should_save=True),
)
{end}
"""


@pytest.mark.parametrize(
    ("end", "error"),
    [("raise OSError('no space')", "OSError: no space"), ("", "the process ended while it was saved")],
)
def test_a_save_that_the_process_did_not_survive_failed(tmp_path: Path, end: str, error: str) -> None:
    run_to_end(tmp_path, FAILS.format(end=end))
    (failed,) = events(tmp_path, "ckpt_failed")
    assert (failed["step"], failed["error"]) == (5, error)
    assert events(tmp_path, "ckpt_saved") == []
