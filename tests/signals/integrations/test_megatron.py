"""Megatron's functions in several generations, as modules that stand in for it: it needs GPUs to run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from signals.integrations.trainings import events, numbers, order, steps
from train_ledger.signals.integrations.megatron import watch, wrap


class OnTheGpu:
    """A tensor that nobody may ask for its number."""

    def item(self) -> float:
        raise AssertionError("asked")

    __float__ = __index__ = item


def of_2020(
    loss_dict: Any,
    total_loss_dict: Any,
    learning_rate: Any,
    iteration: Any,
    loss_scale: Any,
    report_memory_flag: Any,
    skipped_iter: Any,
) -> Any:
    return report_memory_flag


def of_2026(
    loss_dict: Any,
    total_loss_dict: Any,
    learning_rate: Any,
    iteration: Any,
    loss_scale: Any,
    report_memory_flag: Any,
    skipped_iter: Any,
    grad_norm: Any,
    params_norm: Any,
    num_zeros_in_grad: Any,
    max_attention_logit: Any,
    pg_collection: Any = None,
    is_first_iteration: Any = False,
) -> Any:
    return report_memory_flag


def of_a_state(
    loss_dict: Any,
    total_loss_dict: Any,
    learning_rate: Any,
    decoupled_learning_rate: Any,
    loss_scale: Any,
    report_memory_flag: Any,
    skipped_iter: Any,
    grad_norm: Any,
    params_norm: Any,
    num_zeros_in_grad: Any,
    config: Any,
    global_state: Any,
) -> Any:
    return report_memory_flag


LOSSES = {"lm loss": OnTheGpu()}


def test_what_it_was_called_with_is_told_by_name(tmp_path: Path) -> None:
    training = SimpleNamespace(training_log=of_2026)
    with watch(training, tmp_path):
        for iteration in (1, 2):
            returned = training.training_log(
                LOSSES, {}, 1e-4, iteration, 2.0, True, iteration - 1, 1.5, None, 7, OnTheGpu()
            )
            assert returned is True
    first, second = steps(tmp_path)
    assert (first["lr"], first["loss_scale"], first["grad_norm"], first["skipped"]) == (1e-4, 2.0, 1.5, 0)
    assert first["num_zeros_in_grad"] == 7
    assert {"loss", "param_norm", "max_attn_logit"}.isdisjoint(first)
    assert (second["step"], second["skipped"]) == (2, 1)


def test_the_first_generation_knew_less(tmp_path: Path) -> None:
    training = SimpleNamespace(training_log=of_2020)
    with watch(training, tmp_path):
        training.training_log({}, {}, 0.5, 3, None, False, 0)
    (told,) = steps(tmp_path)
    assert (told["step"], told["lr"]) == (3, 0.5)
    assert {"loss_scale", "grad_norm"}.isdisjoint(told)


def test_a_loop_that_keeps_its_iteration_in_a_state(tmp_path: Path) -> None:
    training = SimpleNamespace(training_log=of_a_state)
    state = SimpleNamespace(train_state=SimpleNamespace(step=11))
    with watch(training, tmp_path):
        training.training_log({}, {}, 0.5, None, 1.0, False, 0, 1.5, None, None, None, global_state=state)
    assert numbers(tmp_path) == [11]


def test_a_loss_that_is_a_number_is_taken(tmp_path: Path) -> None:
    training = SimpleNamespace(training_log=of_2020)
    with watch(training, tmp_path):
        training.training_log({"lm loss": 2.5}, {}, 0.5, 1, None, False, 0)
    assert steps(tmp_path)[0]["loss"] == 2.5


def test_the_position_in_the_data_and_tokens_come_from_the_arguments(tmp_path: Path) -> None:
    arguments = SimpleNamespace(consumed_train_samples=1000, seq_length=128, data_parallel_size=4)
    training = SimpleNamespace(training_log=of_2020, get_args=lambda: arguments)
    with watch(training, tmp_path, parallelism={"dp": 4, "tp": 2}):
        for iteration in (11, 12):
            training.training_log({}, {}, 0.5, iteration, None, False, 0)
            arguments.consumed_train_samples += 64
    first, second = steps(tmp_path)
    assert (first["consumed_samples"], second["consumed_samples"]) == (1000, 1064)
    assert "tps" not in first  # tokens of earlier sessions are none of this one
    assert second["tps"] == pytest.approx(64 * 128 / 4 / 2 / second["step_time_s"], rel=1e-6)


def test_saves_loads_and_evaluations(tmp_path: Path) -> None:
    arguments = SimpleNamespace(async_save=False)
    training = SimpleNamespace(
        get_args=lambda: arguments,
        training_log=of_2020,
        save_checkpoint=lambda iteration, model, non_persistent_ckpt=False: "saved",
        load_checkpoint=lambda model: (4, 0.0),
        evaluate_and_print_results=lambda prefix: "evaluated",
    )
    with watch(training, tmp_path):
        assert training.load_checkpoint("model") == (4, 0.0)
        training.training_log({}, {}, 0.5, 5, None, False, 0)
        assert training.save_checkpoint(5, "model") == "saved"
        assert training.evaluate_and_print_results("iteration 5") == "evaluated"
        training.save_checkpoint(6, "model", non_persistent_ckpt=True)
        arguments.async_save = True
        training.save_checkpoint(iteration=7, model="model")
    assert [event["step"] for event in events(tmp_path, "ckpt_loaded")] == [4]
    saved = [(event["step"], event["durable"]) for event in events(tmp_path, "ckpt_saved")]
    assert saved == [(5, True), (6, False), (7, False)]
    told = order(tmp_path)
    assert told.index("5") < told.index("ckpt_saved") < told.index("eval_start") < told.index("eval_end")


def test_what_a_save_raises_passes_and_is_told(tmp_path: Path) -> None:
    def full(iteration: int) -> None:
        raise OSError("no space")

    training = SimpleNamespace(training_log=of_2020, save_checkpoint=full)
    with watch(training, tmp_path), pytest.raises(OSError, match="no space"):
        training.save_checkpoint(5)
    assert [event["error"] for event in events(tmp_path, "ckpt_failed")] == ["OSError: no space"]


def test_a_function_of_an_unknown_generation_is_not_harmed(tmp_path: Path) -> None:
    log = wrap(lambda *everything: "logged", tmp_path)
    assert [log(1, 2), log(3)] == ["logged", "logged"]
    assert numbers(tmp_path) == []


def test_arguments_that_are_not_there_yet_are_none(tmp_path: Path) -> None:
    def get_args() -> None:
        raise AssertionError("args is not initialized.")

    training = SimpleNamespace(training_log=of_2020, get_args=get_args)
    with watch(training, tmp_path):
        training.training_log({}, {}, 0.5, 1, None, False, 0)
    assert numbers(tmp_path) == [1]
    assert events(tmp_path, "warning") == []
