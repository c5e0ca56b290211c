"""What torchtitan prints, in the wordings of three years, and what of it is no value."""

from __future__ import annotations

import doctest
import math
import random
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.facts import Event, Step
from train_ledger.sources.formats import own_name
from train_ledger.sources.formats.torchtitan import torchtitan, torchtitan_notes
from train_ledger.sources.formats.torchtitan.torchtitan import Torchtitan
from train_ledger.sources.lines.log_line import read_line

RECORDED = Path(__file__).parents[3] / "recorded" / "logs" / "torchtitan_two_stages.log"
FRONT = "[titan] 2026-03-04 05:06:07,250 - root - INFO - "
T = datetime(2026, 3, 4, 5, 6, 7, 250_000).timestamp()
STEP = (
    "step: 20  loss:  6.54321  grad_norm:  1.2500  memory: 40.00GiB(50.00%)  tps: 3,400  "
    "tflops: 1,130.20  mfu: 13.16%"
)


def facts(*lines: str | bytes) -> list:
    reader = Torchtitan()
    found = []
    for number, line in enumerate(lines, 1):
        data = line if isinstance(line, bytes) else line.encode()
        assert any(mark in data for mark in reader.marks) or not list(reader.read(read_line(data), ""))
        found += reader.read(read_line(data), f"titan.log:{number}")
    return [*found, *reader.end()]


def test_a_step_tells_all_its_numbers_in_our_units() -> None:
    (step,) = facts(FRONT + STEP)
    assert (step.t, step.step, step.rank, step.source) == (T, 20, None, "titan.log:1")
    assert step.values == {
        "loss": 6.54321,
        "grad_norm": 1.25,
        "mem_reserved_peak": 40 * 2**30,
        "memory_percent": 50.0,
        "tps": 3400.0,
        "tflops": 1130.20,
        "mfu": 13.16,
    }


@pytest.mark.parametrize(
    "front",
    [
        "2024-08-09 01:02:03,004 - root - INFO - ",
        "[titan] 2026-03-04 05:06:07,250 - torchtitan.components.metrics - INFO - ",
        "[rank5]:[titan] 2026-03-04 05:06:07,250 - root - INFO - ",
        "[default5]:[rank5]:2025-03-04 05:06:07,250 - root - INFO - ",
        "node-07: [rank5]:[titan] 2026-03-04 05:06:07,250 - root - INFO - ",
    ],
)
def test_whatever_stands_in_front(front: str) -> None:
    (step,) = facts(front + STEP)
    assert (step.step, step.values["tps"]) == (20, 3400.0)
    assert step.rank == (5 if "rank5" in front else None)
    assert not math.isnan(step.t)


def test_the_line_of_2024_says_wps_and_has_no_gradient_norm() -> None:
    values = "step:  7  loss:  5.1000  memory: 30.00GiB(60.00%)  wps: 2,100  mfu: 31.00%"
    (step,) = facts("2024-08-09 01:02:03,004 - root - INFO - " + values)
    assert step.values["tps"] == 2100.0
    assert "wps" not in step.values
    assert "grad_norm" not in step.values


def test_colours_of_24_bits_and_the_reset_39() -> None:
    coloured = (
        "[titan] 2026-03-04 05:06:07,250 - root - INFO - \x1b[31mstep:  3  \x1b[32mloss: 11.50000  "
        "\x1b[38;2;180;60;0mgrad_norm:  2.5000  \x1b[38;2;54;234;195mmemory: 10.50GiB(13.12%)  "
        "\x1b[34mtps: 12,345  \x1b[36mtflops: 99.10  \x1b[35mmfu: 10.02%\x1b[39m"
    )
    (step,) = facts(coloured)
    assert (step.step, step.values["tps"], step.values["mfu"]) == (3, 12345.0, 10.02)


def test_a_stage_that_has_no_loss_tells_none_and_nothing_is_averaged() -> None:
    lines = (
        "[rank0]:" + FRONT + STEP.replace(" 6.54321", "-1.00000"),
        "[rank4]:" + FRONT + STEP,
    )
    first, last = facts(*lines)
    assert (first.rank, "loss" in first.values) == (0, False)
    assert (last.rank, last.values["loss"]) == (4, 6.54321)


@pytest.mark.parametrize(("word", "is_it"), [("    nan", math.isnan), ("    inf", math.isinf)])
def test_a_loss_that_is_not_finite_is_one(word: str, is_it) -> None:
    (step,) = facts(FRONT + STEP.replace(" 6.54321", word))
    assert is_it(step.values["loss"])


def test_an_exponent_is_kept() -> None:
    (step,) = facts(FRONT + STEP.replace(" 6.54321", "6.05e-06"))
    assert step.values["loss"] == 6.05e-06


def test_mfu_that_is_not_available_is_left_out() -> None:
    (step,) = facts(FRONT + STEP.replace("13.16%", "N/A"))
    assert "mfu" not in step.values
    assert step.values["tflops"] == 1130.20


def test_mfu_against_the_peak_of_another_gpu_is_left_out_and_said_once() -> None:
    warning = FRONT.replace("INFO", "WARNING") + "Peak flops undefined for: Foo GPU 9000, fallback to A100"
    told, step = facts(warning, FRONT + STEP)
    assert (told.name, told.details["device"]) == ("warning", "Foo GPU 9000")
    assert "mfu" not in step.values
    assert step.values["tflops"] == 1130.20


def test_the_first_line_of_a_start_is_marked_and_its_time_per_step_left_out() -> None:
    own = STEP + "  elapsed_time_per_step: 0.500s"
    lines = (
        FRONT + own.replace("20 ", "1 ", 1),
        FRONT + own,
        FRONT + "Training starts at step 41",
        FRONT + own.replace("20 ", "50 ", 1),
        FRONT + own.replace("20 ", "60 ", 1),
    )
    steps = [it for it in facts(*lines) if isinstance(it, Step)]
    marked = [(it.step, "with_start_up" in it.values, it.values.get("step_time_s")) for it in steps]
    assert marked == [(1, True, None), (20, False, 0.5), (50, True, None), (60, False, 0.5)]


def test_ranks_without_a_name_tell_one_step_each_and_none_is_a_start() -> None:
    steps = facts(*[FRONT + STEP.replace("3,400", f"3,40{rank}") for rank in range(8)])
    assert len(steps) == 8
    assert not any("with_start_up" in it.values for it in steps)


def test_a_step_that_goes_back_is_told_as_it_is() -> None:
    steps = facts(FRONT + STEP, FRONT + STEP.replace("20 ", "10 ", 1))
    assert [(it.step, it.attempt) for it in steps] == [(20, 0), (10, 0)]


def test_a_validation_is_no_step() -> None:
    line = "validate step: 20  loss:  6.1000  memory: 41.00GiB(51.25%)  tps: 9,000"
    (event,) = facts(FRONT + line)
    assert (event.name, event.step, event.details["loss"], event.details["tps"]) == (
        "eval_end",
        20,
        6.1,
        9000.0,
    )


@pytest.mark.parametrize(
    ("begun", "finished", "step", "durable"),
    [
        ("Saving a full checkpoint at step 500", "Finished saving the checkpoint in 5.50 seconds", 500, True),
        (
            "Saving the checkpoint (or staging if async is enabled).",
            "Finished saving the checkpoint (or staging if async is enabled)in 5.50 seconds.",
            None,
            None,
        ),
        (
            "Saving the checkpoint (or staging if async is enabled).",
            "Finished saving the checkpoint (or staging if async is enabled) in 5.50 seconds.",
            None,
            None,
        ),
        ("Saving the checkpoint.", "Finished saving the checkpoint in 5.50 seconds.", None, True),
        ("Staging the checkpoint.", "Finished staging the checkpoint in 5.50 seconds.", None, False),
    ],
)
def test_a_save_in_the_wordings_of_three_years(begun, finished, step, durable) -> None:
    start, saved = facts(FRONT + begun, FRONT + finished)
    assert (start.name, start.step) == ("ckpt_start", step)
    assert (saved.name, saved.step, saved.details["duration_s"]) == ("ckpt_saved", step, 5.5)
    assert saved.details.get("durable") is durable


def test_the_last_save_is_one_though_two_lines_begin_it() -> None:
    start, saved = facts(
        FRONT + "Saving the checkpoint.",
        FRONT + "Saving a model only checkpoint in torch.bfloat16 at last step, step 1000.",
        FRONT + "Last step checkpoint completed in 0.12s",
    )
    assert (start.name, saved.name, saved.step) == ("ckpt_start", "ckpt_saved", 1000)
    assert saved.details == {"duration_s": 0.12, "durable": True}


def test_a_load_tells_the_step_by_its_folder() -> None:
    begun, over, loaded, start = facts(
        FRONT + "Loading the checkpoint from /data/step-9/checkpoint/step-500.",
        FRONT + "Finished loading the checkpoint in 61.70 seconds.",
        FRONT + "Training starts at step 501",
    )
    assert (begun.name, begun.details) == ("phase_start", {"phase": "checkpoint_load"})
    assert (over.name, loaded.name, loaded.step) == ("phase_end", "ckpt_loaded", 500)
    assert loaded.details == {"duration_s": 61.7}
    assert (start.name, start.details) == ("run_start", {"first_step": 501})


def test_retries_of_the_allocator_stand_with_the_step_that_follows() -> None:
    warned, plain = facts(
        FRONT.replace("INFO", "WARNING") + "3 CUDA memory allocation retries.",
        FRONT.replace("INFO", "WARNING") + "1 CUDA OOM errors thrown.",
        FRONT + STEP,
        FRONT + STEP.replace("20 ", "30 ", 1),
    )
    assert (warned.values["num_alloc_retries"], warned.values["num_ooms"]) == (3.0, 1.0)
    assert "num_alloc_retries" not in plain.values


@pytest.mark.parametrize(
    "message",
    [
        "Pipeline Parallel loss is not visible. Please add rank 4 to LOG_RANK environment variable.",
        "Ran out of data; last step was canceled.",
    ],
)
def test_warnings_that_explain_what_is_missing_are_carried(message: str) -> None:
    (event,) = facts(FRONT.replace("INFO", "WARNING") + message)
    assert (event.name, event.details) == ("warning", {"message": message})


def test_the_end() -> None:
    (event,) = facts(FRONT + "Training completed")
    assert event.name == "run_end"


@pytest.mark.parametrize(
    "line",
    [
        '            f"{color.red}step: {step:2}  "',
        '        logger.info(f"Training starts at step {self.step + 1}")',
        'logger.info("Training completed")',
        "Training completed",
        "step:2210/2500 train_time:512340ms step_avg:231.83ms",
        "step: 20 of the recipe: stir",
        "iter 0: loss 10.9, time 1234ms, mfu -100.00%",
        "Finished saving the checkpoint in 5 seconds",
    ],
)
def test_source_code_and_lines_of_other_programs_say_nothing(line: str) -> None:
    assert facts(line) == []


def recorded() -> list[bytes]:
    return RECORDED.read_bytes().splitlines()


def test_a_whole_log_of_two_stages_with_a_resume() -> None:
    found = facts(*recorded())
    losses = [(it.step, it.values["loss"]) for it in found if isinstance(it, Step) and "loss" in it.values]
    assert losses == [(1, 12.25001), (10, 9.75003), (20, 8.5), (20, 8.4), (30, 7.9)]
    assert {it.rank for it in found if isinstance(it, Step) and "loss" in it.values} == {1}
    assert [it.name for it in found if isinstance(it, Event) and it.rank == 0] == [
        "warning",
        "run_start",
        "ckpt_start",
        "ckpt_saved",
        "phase_start",
        "phase_end",
        "ckpt_loaded",
        "run_start",
        "ckpt_start",
        "ckpt_saved",
        "run_end",
    ]


def test_mutated_lines_raise_nothing_and_are_read_in_time() -> None:
    rng = random.Random(4)
    lines, reader = recorded(), Torchtitan()
    for number in range(10_000):
        data = bytearray(rng.choice(lines))
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randint(0, 4)] = rng.randbytes(rng.randint(0, 4))
        for fact in reader.read(read_line(bytes(data)), f"mutated:{number}"):
            assert isinstance(fact, Step | Event)


@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    reader = Torchtitan()
    for front in ("", FRONT, FRONT + "step: 3  loss: "):
        list(reader.read(read_line((front + text).encode("utf-8", "replace")), "any:1"))


@pytest.mark.parametrize("module", [own_name, torchtitan, torchtitan_notes])
def test_the_examples(module) -> None:
    assert doctest.testmod(module).failed == 0
