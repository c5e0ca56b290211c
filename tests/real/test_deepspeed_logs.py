"""Real logs of DeepSpeed and DeepSpeed-Chat, held against what is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.facts import Event, Step
from train_ledger.sources import read_facts

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="real logs are not here")


def told(name: str) -> list:
    return list(read_facts([LOGS / name]))


def test_06_the_engine_of_a_trainer_is_made_and_tells_no_step() -> None:
    (made,) = (
        it
        for it in told("06_hf_trainer_deepspeed_2021_n4.out")
        if isinstance(it, Event) and it.name == "engine_start"
    )
    assert (made.rank, made.details["lr"]) == (0, 5e-5)


def test_08_as_many_overflows_as_skipped_steps_and_a_clean_end() -> None:
    facts = told("08_deepspeed_chat_sft_2023_overflow.log")
    overflows = [it for it in facts if isinstance(it, Event) and it.details.get("what") == "overflow"]
    steps = [it for it in facts if isinstance(it, Step)]
    assert len(overflows) == 139 == max(it.values.get("skipped", 0) for it in steps)
    assert [it.step for it in steps] == list(range(10, 7361, 10))
    assert {it.rank for it in steps} == {0}
    assert all({"lr", "samples_per_second", "mem_allocated_peak"} <= it.values.keys() for it in steps)
    assert {it.attempt for it in facts} == {0}
    ended = [it for it in facts if isinstance(it, Event) and it.name == "process_end"]
    assert len(ended) == 16
    assert {it.details["code"] for it in ended} == {0}


def test_10_each_step_of_reinforcement_learning_has_its_phases() -> None:
    steps = [it for it in told("10_deepspeed_rlhf_2023_phases.log") if isinstance(it, Step)]
    first = next(it for it in steps if "generate_time_s" in it.values)
    assert (first.step, first.values["step_time_s"], first.values["generate_time_s"]) == (0, 7.99, 5.26)
    assert [it.step for it in steps] == list(range(477))
    assert {it.attempt for it in steps} == {0}
    phased = [it for it in steps if "generate_time_s" in it.values]
    assert len(phased) == 476
    for step in phased:
        parts = ("gather_latency_s", "generate_time_s", "training_time_s", "others_s")
        assert sum(step.values[it] for it in parts) == pytest.approx(step.values["step_time_s"], abs=0.03)
