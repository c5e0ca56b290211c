"""What DeepSpeed prints as it trains, in the wordings of each generation. All lines are invented."""

from __future__ import annotations

import math
from datetime import datetime

import pytest

from sources.formats.told import events, faults, steps, told
from train_ledger.facts import Event, Step
from train_ledger.sources.formats.deepspeed.deepspeed import DeepSpeed
from train_ledger.sources.lines.log_line import read_line

FRONT = "[2024-05-06 07:08:09,125] [INFO] [logging.py:96:log_dist] [Rank 0] "
T = datetime(2024, 5, 6, 7, 8, 9, 125_000).timestamp()


def engine(step: int, skipped: int = 0) -> str:
    return f"{FRONT}step={step}, skipped={skipped}, lr=[1.5e-05, 1.5e-05], mom=[(0.9, 0.95), (0.9, 0.95)]"


def test_the_timer_alone_counts_where_nothing_else_tells_steps() -> None:
    lines = [
        f"[2021-02-03 04:05:{at:02},250] [INFO] [timer.py:1:stop] 0/{at}0, SamplesPerSec=9.5" for at in (1, 2)
    ]
    assert [it.step for it in steps(DeepSpeed(), *lines)] == [10, 20]
    engine = "[2021-02-03 04:05:00,250] [INFO] [logging.py:1:log_dist] [Rank 0] step=5, skipped=0, lr=[0.5]"
    assert [it.step for it in steps(DeepSpeed(), engine, *lines)] == [5, 5, 5]


def test_a_time_in_milliseconds_at_the_end_of_a_name_is_no_row_of_timers() -> None:
    line = "epoch: 0 | step: 3 | ppo_ep: 1 | act_loss: 5.5 | cri_loss: 5.25 | training_time (ms): 4350.5"
    (found,) = steps(DeepSpeed(), line)
    assert (found.step, found.values["act_loss"], found.values["training_time_ms"]) == (3, 5.5, 4350.5)


def test_an_engine_tells_step_skips_and_rate_and_whose_they_are() -> None:
    (step,) = steps(DeepSpeed(), engine(40, 6))
    assert (step.t, step.step, step.rank) == (T, 40, 0)
    assert step.values == {"skipped": 6.0, "lr": 1.5e-5, "mom": 0.9}


def test_the_host_in_front_is_told_and_rates_of_groups_that_differ_too() -> None:
    line = f"worker-2: {FRONT}step=3, skipped=0, lr=[0.001, 0.0005], mom=[[0.9, 0.999]]"
    (step,) = steps(DeepSpeed(), line)
    assert (step.host, step.values) == ("worker-2", {"skipped": 0.0, "lr": 0.001, "lr_1": 0.0005, "mom": 0.9})


def test_the_timer_tells_samples_per_second_and_memory() -> None:
    line = (
        "[2024-05-06 07:08:09,125] [INFO] [timer.py:260:stop] epoch=0/micro_step=80/global_step=40,"
        " RunningAvgSamplesPerSec=150.5, CurrSamplesPerSec=151.25, MemAllocated=2.5GB, MaxMemAllocated=20.0GB"
    )
    (step,) = steps(DeepSpeed(), line)
    assert (step.t, step.step) == (T, 40)
    assert step.values == {
        "samples_per_second_avg": 150.5,
        "samples_per_second": 151.25,
        "mem_allocated": 2.5 * 2**30,
        "mem_allocated_peak": 20.0 * 2**30,
    }


def test_a_mean_that_has_no_steps_yet_is_no_value() -> None:
    line = "epoch=0/micro_step=1/global_step=1, RunningAvgSamplesPerSec=-inf, CurrSamplesPerSec=9.5"
    (step,) = steps(DeepSpeed(), line)
    assert step.values == {"samples_per_second": 9.5}


def test_the_timer_of_2022_counts_micro_batches_so_it_is_of_the_step_before_it() -> None:
    line = "[INFO] [timer.py:198:stop] 0/80, RunningAvgSamplesPerSec=90.5, CurrSamplesPerSec=91.0"
    assert [it.step for it in steps(DeepSpeed(), engine(20), line)] == [20, 20]


def test_the_pipeline_tells_losses_and_time() -> None:
    line = "steps: 12 loss: 5.5000 lm loss: 5.2500 moe loss: 0.2500 iter time (s): 0.750 samples/sec: 170.500"
    (step,) = steps(DeepSpeed(), line)
    assert step.step == 12
    assert step.values == {
        "loss": 5.5,
        "lm_loss": 5.25,
        "moe_loss": 0.25,
        "step_time_s": 0.75,
        "samples_per_second": 170.5,
    }


def test_a_loss_that_is_nan_stays_so() -> None:
    (step,) = steps(DeepSpeed(), "steps: 12 loss: nan iter time (s): 0.750")
    assert math.isnan(step.values["loss"])


@pytest.mark.parametrize(
    ("text", "rank", "details"),
    [
        (
            "[deepspeed] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 65536, reducing to 32768",
            3,
            {"loss_scale": 65536.0, "next_loss_scale": 32768.0},
        ),
        (
            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, but hysteresis is"
            " 2. Reducing"
            " hysteresis to 1",
            0,
            {"loss_scale": 65536.0},
        ),
        (
            "[deepspeed] fp16 dynamic loss scale overflow! Rank 1 Skipping step. Attempted loss scale:"
            " 4096.0,"
            " reducing to 2048.0",
            1,
            {"loss_scale": 4096.0, "next_loss_scale": 2048.0},
        ),
        (
            "[Rank 0] Overflow detected. Skipping step. Attempted loss scale: 8192.0, reducing to 4096.0",
            0,
            {"loss_scale": 8192.0, "next_loss_scale": 4096.0},
        ),
    ],
)
def test_an_overflow_of_the_scaler_is_a_warning(text, rank, details) -> None:
    (event,) = events(
        DeepSpeed(), f"[2024-05-06 07:08:09,125] [INFO] [loss_scaler.py:190:update_scale] {text}"
    )
    assert (event.name, event.t, event.rank) == ("warning", T, rank)
    assert event.details == {"what": "overflow", **details}
    assert faults(DeepSpeed(), text) == []


@pytest.mark.parametrize(
    "text",
    [
        "[deepspeed] OVERFLOW! Rank 2 Skipping step.",
        "[Rank 2] [deepspeed] OVERFLOW! Skipping step. Gradients are non-finite, weights were not updated.",
    ],
)
def test_without_a_scaler_it_is_a_gradient_that_is_not_finite(text) -> None:
    (fault,) = faults(DeepSpeed(), f"[2024-05-06 07:08:09,125] [WARNING] [loss_scaler.py:153:log] {text}")
    assert (fault.fault, fault.t, fault.rank) == ("nan_suspected", T, 2)


def test_an_older_wording_comes_once_per_rank_and_is_told_once() -> None:
    each = ["Grad overflow on iteration 5", "Reducing dynamic loss scale from 1024 to 512.0"]
    other = ["Grad overflow on iteration: 6", "Reducing dynamic loss scale from 512 to 256.0"]
    found = events(DeepSpeed(), *each, *each, *each, *other, *other, "No Grad overflow for 1000 iterations")
    assert [dict(it.details) for it in found] == [
        {"what": "overflow", "scaler_iteration": 5},
        {"what": "loss scale reduced", "loss_scale": 1024.0, "next_loss_scale": 512.0},
        {"what": "overflow", "scaler_iteration": 6},
        {"what": "loss scale reduced", "loss_scale": 512.0, "next_loss_scale": 256.0},
    ]


MICRO = "time (ms) | fwd_microstep: {0}.00 | bwd_microstep: 20.00 | step_microstep: 3.00"
CLOSING = "time (ms) | fwd: {0}.00 | bwd: 40.00 | bwd_inner: 36.00 | bwd_allreduce: 0.00 | step: 3.00"


def test_timers_are_of_the_step_that_was_told_and_count_on_from_it() -> None:
    found = steps(
        DeepSpeed(),
        *(MICRO.format(1), engine(10), MICRO.format(1), CLOSING.format(1)),
        *(MICRO.format(2), MICRO.format(2), CLOSING.format(2)),
        CLOSING.format(3),
    )
    assert [(it.step, it.values["fwd_s"]) for it in found if "fwd_s" in it.values] == [
        (10, 0.001),
        (11, 0.002),
        (12, 0.003),
    ]
    micro = [(it.step, it.values["fwd_microstep_s"]) for it in found if "fwd_microstep_s" in it.values]
    assert micro == [(10, 0.001), (10, 0.001), (11, 0.002), (11, 0.002)]
    closing = found[3].values
    assert closing == {"fwd_s": 0.001, "bwd_s": 0.04, "bwd_inner_s": 0.036, "opt_s": 0.003}


def test_timers_before_the_first_number_are_counted_back_from_it() -> None:
    found = steps(DeepSpeed(), *(CLOSING.format(it) for it in (1, 2, 3)), engine(4), CLOSING.format(4))
    told_of = [(it.step, it.values["fwd_s"]) for it in found if "fwd_s" in it.values]
    assert told_of == [(1, 0.001), (2, 0.002), (3, 0.003), (4, 0.004)]


def test_an_engine_that_was_just_made_has_made_no_step() -> None:
    found = told(DeepSpeed(), engine(0), CLOSING.format(1), engine(502), CLOSING.format(2))
    assert [(it.name, it.rank, it.details["lr"]) for it in found if isinstance(it, Event)] == [
        ("engine_start", 0, 1.5e-5)
    ]
    assert [(it.step, it.values.get("fwd_s")) for it in found if isinstance(it, Step)] == [
        (501, 0.001),
        (502, None),
        (502, 0.002),
    ]


def test_timers_for_which_no_number_ever_comes_are_events() -> None:
    found = told(DeepSpeed(), CLOSING.format(1), CLOSING.format(2))
    assert [(it.name, it.step, it.details["fwd_s"]) for it in found] == [
        ("timers", None, 0.001),
        ("timers", None, 0.002),
    ]


def test_a_log_of_timers_alone_is_held_in_bounded_memory() -> None:
    reader = DeepSpeed()
    early = [fact for _ in range(5000) for fact in reader.read(read_line(CLOSING.format(1).encode()), "t:1")]
    assert len(early) == 5000 - 4096
    assert len(list(reader.end())) == 4096


@pytest.mark.parametrize("front", ["", FRONT, FRONT + "rank=0 ", "[Rank 0] rank=0 "])
def test_the_pipelines_timers_and_older_names_are_read_behind_any_front(front) -> None:
    line = (
        "time (ms) | train_batch: 0.00 | batch_input: 7.50 | forward: 500.00 | backward: 900.00 | step: 20.00"
    )
    timed = steps(DeepSpeed(), engine(20), front + line)[1]
    assert (timed.step, timed.rank) == (20, 0)
    assert timed.values == {"data_wait_s": 0.0075, "fwd_s": 0.5, "bwd_s": 0.9, "opt_s": 0.02}


def test_megatrons_timers_are_left_to_megatron() -> None:
    line = "time (ms) | forward-compute: 120.00 | backward-compute: 240.50 | optimizer: 15.00"
    assert len(told(DeepSpeed(), engine(20), line)) == 1


def test_checkpoints_begin_and_end() -> None:
    found = events(
        DeepSpeed(),
        FRONT + "[Torch] Checkpoint global_step500 is about to be saved!",
        FRONT + "[Torch] Checkpoint global_step500 is ready now!",
        FRONT + "[Torch] Checkpoint best is about to be saved!",
    )
    assert [(it.name, it.step, dict(it.details)) for it in found] == [
        ("ckpt_start", 500, {"tag": "global_step500"}),
        ("ckpt_saved", 500, {"tag": "global_step500", "durable": True}),
        ("ckpt_start", None, {"tag": "best"}),
    ]


def test_the_launcher_tells_whom_it_ended_and_who_ended_well() -> None:
    found = events(
        DeepSpeed(),
        "[2024-05-06 07:08:09,125] [INFO] [launch.py:460:main] Process 4100 exits successfully.",
        "[2024-05-06 07:08:09,125] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 4101",
        "Killing subprocess 4102",
        "[2024-05-06 07:08:09,125] [INFO] [launch.py:324:sigkill_handler] Main process received SIGTERM,"
        " exiting",
    )
    assert [(it.name, dict(it.details)) for it in found] == [
        ("process_end", {"pid": 4100, "code": 0}),
        ("signal_sent", {"pid": 4101, "victim": True}),
        ("signal_sent", {"pid": 4102, "victim": True}),
        ("signal", {"number": 15, "of": "launcher"}),
    ]


CHAT = (
    "Beginning of Epoch 1/2, Total Generation Batches 2",
    engine(1, 1),
    "epoch: 0|step: 0|ppo_ep: 1|act_loss: 0.25|cri_loss: -0.125|unsuper_loss: 0.0",
    "average reward score: -0.5",
    "|E2E latency=8.00s |Gather latency=0.00s (0.00%) |Generate time=5.00s (62.50%) |Training time=2.50s"
    " (31.25%)"
    " |Others=0.50 (6.25%)|CurSamplesPerSec=8.00 |AvgSamplesPerSec=8.50",
    "epoch: 0|step: 1|ppo_ep: 1|act_loss: 0.5|cri_loss: 0.25|unsuper_loss: 0.0",
    "epoch: 1|step: 0|ppo_ep: 1|act_loss: 0.75|cri_loss: 0.25|unsuper_loss: 0.0",
)


def test_reinforcement_learning_counts_its_steps_on_and_tells_its_phases() -> None:
    found = steps(DeepSpeed(), *CHAT)
    assert [it.step for it in found] == [0, 0, 0, 0, 1, 2]
    assert found[0].values == {"skipped": 1.0, "lr": 1.5e-5, "mom": 0.9, "engine_step": 1.0}
    assert found[1].values == {
        "epoch": 0.0,
        "ppo_ep": 1.0,
        "act_loss": 0.25,
        "cri_loss": -0.125,
        "unsuper_loss": 0.0,
    }
    assert found[2].values == {"reward": -0.5}
    assert found[3].values == {
        "step_time_s": 8.0,
        "gather_latency_s": 0.0,
        "generate_time_s": 5.0,
        "training_time_s": 2.5,
        "others_s": 0.5,
        "samples_per_second": 8.0,
        "samples_per_second_avg": 8.5,
    }


def test_its_newer_wording_is_read_too() -> None:
    found = steps(
        DeepSpeed(),
        "Epoch: 0 | Step: 4 | PPO Epoch: 1 | Actor Loss: 0.25 | Critic Loss: 0.5 | Unsupervised Loss: 0.0",
        "End-to-End => Latency: 12.50s, TFLOPs: 18.25, Samples/sec: 2.5, Time/seq 0.40s, Batch Size: 32",
        "Generation => Latency: 10.00s, Per-token Latency 40.00 ms, TFLOPs: 3.5, BW: 70.00 GB/sec",
        "Training   => Latency: 2.00s, TFLOPs: 93.5",
        "Average reward score: 0.5 | EMA reward score: 0.25",
    )
    values = {name: it for step in found for name, it in step.values.items()}
    assert {it.step for it in found} == {4}
    assert values["actor_loss"] == 0.25
    assert (values["step_time_s"], values["tflops"], values["samples_per_second"]) == (12.5, 18.25, 2.5)
    assert (values["generation_s"], values["training_s"], values["training_tflops"]) == (10.0, 2.0, 93.5)
    assert (values["reward"], values["reward_ema"]) == (0.5, 0.25)


@pytest.mark.parametrize(
    "text",
    [
        '        log_dist(f"step={step}, skipped={self.skipped_steps}, lr={lr}, mom={mom}", ranks=[0])',
        "    'step=10, skipped=6, lr=[0.1], mom=[0.9]'",
        "# epoch=0/micro_step=1/global_step=1, RunningAvgSamplesPerSec=9.5, CurrSamplesPerSec=9.5",
        "print('steps: 1 loss: 2.0 iter time (s): 1.0 samples/sec: 3.0')",
        'overflow_msg = "OVERFLOW! Rank 0 Skipping step."',
        "Epoch: 1 | Step: 2 | nothing of losses: 5",
        "step: 12 skipped, lr 0.1",
    ],
)
def test_source_code_and_other_programs_are_not_taken_for_its_lines(text) -> None:
    assert told(DeepSpeed(), text) == []
