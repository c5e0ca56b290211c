"""A real log of the Hugging Face Trainer, of four nodes that write into each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.facts import Event, Step
from train_ledger.sources.formats.hugging_face.hf_trainer import HfTrainer
from train_ledger.sources.lines.log_line import read_line

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="real logs are not here")


def facts(name: str) -> list:
    reader, found = HfTrainer(), []
    for number, line in enumerate((LOGS / name).read_bytes().split(b"\n"), 1):
        if reader.wants_more or any(mark in line for mark in reader.marks):
            found += reader.read(read_line(line), f"{name}:{number}")
    return [*found, *reader.end()]


def test_the_run_time_at_the_end_is_a_clock_and_the_bars_are_steps() -> None:
    found = facts("06_hf_trainer_deepspeed_2021_n4.out")
    steps = [it for it in found if isinstance(it, Step)]
    assert [it.step for it in steps] == list(range(1, 17))
    assert all(53 <= it.values["step_time_s"] <= 62 for it in steps[1:])
    assert steps[-1].t - steps[0].t == pytest.approx(861, abs=2)
    ends = [it for it in found if isinstance(it, Event) and it.name == "run_end"]
    assert [it.details["train_runtime"] for it in ends] == pytest.approx(
        [919.097, 919.094, 919.03, 919.0933, 15 * 60 + 19.02]
    )
    assert ends[-1].details["train_samples"] == 1000
    assert not [it for it in found if isinstance(it, Event) and it.name == "metrics"]


@pytest.mark.parametrize(
    "name",
    [
        "01_megatron_2021_tp4pp64_fp16skips.out",
        "08_deepspeed_chat_sft_2023_overflow.log",
        "11_modded_nanogpt_2025_source_in_log.txt",
        "17b_nccl_watchdog_dual8.log",
    ],
)
def test_logs_of_other_trainers_say_nothing(name: str) -> None:
    assert facts(name) == []
