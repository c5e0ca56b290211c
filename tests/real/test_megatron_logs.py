"""Real logs of Megatron and those built on it, held against what is known of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from train_ledger.facts import Event, Fault, Step
from train_ledger.sources import read_facts

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="real logs are not here")


def told(name: str):
    reading = read_facts([LOGS / name])
    return list(reading), reading


def iterations(name: str) -> list[Step]:
    return [it for it in told(name)[0] if isinstance(it, Step) and "step_time_s" in it.values]


def test_01_the_warm_up_of_fp16_is_19_skips_and_no_fault() -> None:
    facts, _ = told("01_megatron_2021_tp4pp64_fp16skips.out")
    steps = [it for it in facts if isinstance(it, Step) and "step_time_s" in it.values]
    assert [it.step for it in steps] == [10, 20, 30, 40, 50, 60]
    assert [it.values["skipped"] for it in steps] == [10, 18, 19, 19, 19, 19]
    assert ["loss" in it.values for it in steps] == [False, True, True, True, True, True]
    assert ["grad_norm" in it.values for it in steps] == [False, False, True, True, True, True]
    assert steps[0].values["fwd_s"] == pytest.approx(0.24763)
    assert not [it for it in facts if isinstance(it, Fault) and it.fault == "nan_suspected"]


def test_01_each_rank_that_tells_its_memory_is_a_rank_and_rank_0_speaks_for_the_job() -> None:
    facts, _ = told("01_megatron_2021_tp4pp64_fp16skips.out")
    of = {it.rank for it in facts if isinstance(it, Step) and "mem_allocated_peak" in it.values}
    assert of == {None, *range(1, 256)}


def test_03_two_emitters_tell_one_step() -> None:
    facts, reading = told("03_megds3d_2021_old_interleaved.out")
    steps = [it for it in facts if isinstance(it, Step)]
    with_loss = [it for it in steps if "loss" in it.values]
    assert [it.step for it in with_loss] == [1, 2]
    assert all({"samples_per_second", "loss_scale", "step_time_s"} <= it.values.keys() for it in with_loss)
    assert {it.attempt for it in steps} == {0}
    assert {it.step for it in steps} == {1, 2}
    assert {it.name for it in reading.files[0].formats} >= {"Megatron", "DeepSpeed"}


def test_04_a_norm_of_0_is_a_placeholder() -> None:
    steps = iterations("04_megds3d_2021_lm-loss-hyphen.out")
    assert [it.step for it in steps] == list(range(1, 50))
    assert all("loss" in it.values for it in steps)
    assert not any({"grad_norm", "loss_scale", "num_zeros_in_grad"} & it.values.keys() for it in steps)
    assert steps[0].values["loss"] == pytest.approx(12.44238)


def test_07_the_spike_the_slow_down_and_the_broken_lines_of_bloom() -> None:
    facts, reading = told("07_bloom_tr11_chronicles.md")
    steps = {it.step: it.values for it in facts if isinstance(it, Step) and "step_time_s" in it.values}
    assert steps[12695]["tflops"] == 149.02
    assert (steps[31214]["loss"], steps[31219]["loss"]) == (pytest.approx(2.198845), pytest.approx(5.098124))
    assert (steps[31219]["grad_norm"], steps[31250]["grad_norm"]) == (960.351, 0.267)
    broken = [steps[it] for it in range(42780, 42785)]
    assert all({"lr", "loss", "nan_iterations", "tflops"} <= it.keys() for it in broken)
    assert broken[-1]["step_time_s"] / broken[0]["step_time_s"] == pytest.approx(1.057, abs=1e-3)
    assert steps[45000]["consumed_tokens"] == 155_652_554_752
    assert not reading.files[0].damaged
    ended = [it for it in facts if isinstance(it, Event) and it.name == "eval_end"]
    assert [(it.step, it.details["val_loss"]) for it in ended] == [(45000, pytest.approx(2.327091))]


def test_every_dialect_of_the_collection_is_read() -> None:
    facts, _ = told("dialects.txt")
    steps = {it.step: it for it in facts if isinstance(it, Step) and "consumed_samples" in it.values}
    assert steps.keys() == {10, 2345, 70, 120, 5}
    assert "loss" not in steps[10].values
    assert steps[70].values["tflops"] == 243.0
    assert (steps[120].rank, steps[120].values["step_time_s"]) == (7, pytest.approx(13.3005))
    assert steps[5].values["loss"] == 1.0
    hidden = [it.step for it in facts if isinstance(it, Fault) and it.fault == "nan_suspected"]
    assert hidden == [2345]


@pytest.mark.parametrize("name", ["08", "10", "11_", "11b", "12", "17b", "17c", "23a", "23b", "23c", "06"])
def test_logs_of_others_hold_no_iteration_of_megatrons(name) -> None:
    (path,) = LOGS.glob(f"{name}*")
    _, reading = told(path.name)
    assert Counter(it.name for it in reading.files[0].formats if it.steps)["Megatron"] == 0
