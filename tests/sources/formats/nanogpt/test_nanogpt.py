"""What nanoGPT and its kin print, and what of it is program text. All lines are invented."""

from __future__ import annotations

import math
from datetime import datetime

import pytest

from sources.formats.told import steps, told
from train_ledger.sources.formats.nanogpt.nanogpt import NanoGpt

DIALECTS = {
    "nanoGPT": (
        "iter 40: loss 3.5000, time 250.00ms, mfu 17.50%",
        40,
        {"loss": 3.5, "step_time_s": 0.25, "mfu": 17.5},
    ),
    "nanoGPT before it knows": (
        "iter 0: loss 10.9, time 1234ms, mfu -100.00%",
        0,
        {"loss": 10.9, "step_time_s": 1.234},
    ),
    "nanoGPT's estimate": (
        "step 250: train loss 2.1, val loss 2.2",
        250,
        {"train_loss": 2.1, "val_loss": 2.2},
    ),
    "llm.c's log": ("s:95 trl:3.25 lr:0.0006 norm:0.50", 95, {"loss": 3.25, "lr": 0.0006, "grad_norm": 0.5}),
    "llm.c's evaluation": ("s:250 tel:3.5", 250, {"val_loss": 3.5}),
    "llm.c's benchmark": ("s:250 eval:0.275", 250, {"eval": 0.275}),
    "llm.c's screen": (
        "step    7/19560 | loss 7.625000 (+0.25z)| norm 1.2500 (-1.5z)| lr 6.0e-04 | 250.50 ms | 42.5%"
        " bf16 MFU |"
        " 171518 tok/s",
        7,
        {
            "loss": 7.625,
            "grad_norm": 1.25,
            "lr": 6e-4,
            "step_time_s": 0.2505,
            "mfu": 42.5,
            "tokens_per_s": 171518.0,
        },
    ),
    "llm.c before it knows": (
        "step    1/10 | loss 11.0 (+nanz)| norm 15.5 (+nanz)| lr 8.5e-07 | 2500.00 ms | -100.0% bf16 MFU"
        " | 99 tok/s",
        1,
        {"loss": 11.0, "grad_norm": 15.5, "lr": 8.5e-7, "step_time_s": 2.5, "tokens_per_s": 99.0},
    ),
    "llm.c in Python": (
        "step    3/10 | train loss 5.25 | norm 30.5 | lr 1.0e-04 | (1000.0 ms | 4096 tok/s)",
        3,
        {"loss": 5.25, "grad_norm": 30.5, "lr": 1e-4, "step_time_s": 1.0, "tokens_per_s": 4096.0},
    ),
    "llm.c of the first weeks": (
        "step 2: train loss 4.5 (took 1500.5 ms)",
        2,
        {"loss": 4.5, "step_time_s": 1.5005},
    ),
    "build-nanogpt": (
        "step     5 | loss: 9.250000 | lr 6.0e-04 | norm: 2.5 | dt: 338.50ms | tok/sec: 48480.50",
        5,
        {"loss": 9.25, "lr": 6e-4, "grad_norm": 2.5, "step_time_s": 0.3385, "tokens_per_s": 48480.5},
    ),
    "build-nanogpt's file": ("250 train 4.125000", 250, {"loss": 4.125}),
    "build-nanogpt's file, evaluations": ("250 val 4.2500", 250, {"val_loss": 4.25}),
    "in thousands": (
        "step 250 | train_loss 3.50  | norm 0.25  | time 2250.00 ms | tok/sec 250.50K",
        250,
        {"loss": 3.5, "grad_norm": 0.25, "step_time_s": 2.25, "tokens_per_s": 250500.0},
    ),
    "nanoGPT with more": (
        "iter 30: loss 9.5000, grad_norm 2.5000, lr 6.00e-05, time 104.5ms",
        30,
        {"loss": 9.5, "grad_norm": 2.5, "lr": 6e-5, "step_time_s": 0.1045},
    ),
    "nanoGPT with less": ("iter 3: loss 10.5000", 3, {"loss": 10.5}),
    "nanoGPT's benchmarks": (
        "iter 44: loss 4.6250, iter time: 385.25ms, t: 4096",
        44,
        {"loss": 4.625, "step_time_s": 0.38525},
    ),
    "nanoGPT in thousands": (
        "iter 10: loss 9.25, lr 4.00e-05, 176.5k tok/s, FP8: False",
        10,
        {"loss": 9.25, "lr": 4e-5, "tokens_per_s": 176500.0},
    ),
    "llama2.c": (
        "490 | loss 5.7500 | lr 4.900000e-05 | 8060.50ms | mfu 0.25%",
        490,
        {"loss": 5.75, "lr": 4.9e-5, "step_time_s": 8.0605, "mfu": 0.25},
    ),
    "torchtune": (
        "Step 3 | loss:2.0625 lr:2e-05 tokens_per_second_per_gpu:57.5",
        3,
        {"loss": 2.0625, "lr": 2e-5, "tps": 57.5},
    ),
    "nanochat": (
        "step 00005/21400 (0.02%) | loss: 8.5 | lrm: 0.50 | dt: 2800.00ms | tok/sec: 18,724 | bf16_mfu:"
        " 41.5 |"
        " epoch: 1 pq: 0 rg: 8 | total time: 0.50m",
        5,
        {
            "loss": 8.5,
            "lrm": 0.5,
            "step_time_s": 2.8,
            "tokens_per_s": 18724.0,
            "mfu": 41.5,
            "total_time_s": 30.0,
        },
    ),
    "nanochat's evaluation": ("Step 00250 | Validation bpb: 0.9875", 250, {"val_bpb": 0.9875}),
    "modded-nanogpt's evaluation": (
        "step:0/4740 val_loss:10.75 train_time:2ms step_avg:0.50ms",
        0,
        {"val_loss": 10.75, "train_time_s": 0.002, "step_avg_s": 0.0005},
    ),
    "modded-nanogpt before it knows": (
        "step:1/100 train_loss:10.5 train_time:77ms step_avg:nanms",
        1,
        {"loss": 10.5, "train_time_s": 0.077},
    ),
}


@pytest.mark.parametrize(("text", "step", "values"), DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_tells_its_numbers_by_our_names_and_units(text, step, values) -> None:
    (found,) = steps(NanoGpt(), text)
    assert found.step == step
    assert found.values == pytest.approx(values)


@pytest.mark.parametrize("text", [it[0] for it in DIALECTS.values()], ids=DIALECTS)
@pytest.mark.parametrize("ahead", ["# ", "    ", "print0(f'", 'x = "', "> as in: "])
def test_the_same_text_within_a_program_is_no_step(text, ahead) -> None:
    if ahead != "    ":
        assert told(NanoGpt(), ahead + text) == []


@pytest.mark.parametrize(
    "text",
    [
        'print(f"iter {iter_num}: loss {lossf:.4f}, time {dt*1000:.2f}ms, mfu {running_mfu*100:.2f}%")',
        'print0(f"step:{step}/{train_steps} val_loss:{val_loss:.4f} train_time:{t:.0f}ms avg:{a:.2f}ms")',
        "step:5/100 train_time:5ms step_avg:{avg}ms",
        "step: 40  loss:  5.1000  memory: 30.00GiB(60.00%)  wps: 2,100  mfu: 31.00%",
        "step 5 | of the recipe: 3",
        "s:5 trl:3.25; norm: 2",
        "iter 5: loss is 3.2, time 5ms",
        "iter 5: loss 3.2 (best of 7 runs so far, see above)",
        "250 train 4",
        "12 | loss of the second row | 3.5",
        "Step 3 | loss:low",
        "epoch 250 train 4.125000",
        "    train loss 5.5, val loss 6.5",
        "def get_bs(step: int): return 5",
    ],
)
def test_source_code_and_other_programs_are_not_taken_for_a_step(text) -> None:
    assert told(NanoGpt(), text) == []


def test_a_loss_of_validation_without_a_step_is_of_the_last_one() -> None:
    found = steps(NanoGpt(), "step   20/100 | loss 5.0 (+0.1z)| 5.00 ms", "val loss 5.125")
    assert (found[1].step, found[1].values) == (20, {"val_loss": 5.125})


def test_a_steps_time_is_the_difference_of_the_time_that_runs_on() -> None:
    found = steps(
        NanoGpt(),
        "step:10/100 train_time:1000ms step_avg:100.00ms",
        "step:11/100 train_time:1125ms step_avg:102.27ms",
        "step:11/100 val_loss:3.5 train_time:1126ms step_avg:102.36ms",
        "step:13/100 train_time:1375ms step_avg:105.77ms",
        "step:12/100 train_time:50ms step_avg:4.17ms",
    )
    assert [it.values.get("step_time_s") for it in found] == [None, 0.125, None, 0.125, None]


@pytest.mark.parametrize("written", ["nan", "inf", "1E+1", "6.05e-06", "-1.0"])
def test_numbers_keep_exponent_sign_and_nan(written) -> None:
    (step,) = steps(NanoGpt(), f"s:5 trl:{written} lr:0.1 norm:2.0")
    assert step.values["loss"] == pytest.approx(float(written), nan_ok=True)


@pytest.mark.parametrize("front", ["", "0: ", "[rank0]: ", "[2025-01-02 03:04:05][INFO][train.py:12] - "])
def test_the_front_is_taken_off(front) -> None:
    (step,) = steps(NanoGpt(), front + "iter 5: loss 3.5, time 9.0ms")
    told_t = datetime(2025, 1, 2, 3, 4, 5).timestamp()
    assert step.t == told_t if "2025" in front else math.isnan(step.t)
