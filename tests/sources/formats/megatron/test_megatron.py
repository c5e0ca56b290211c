"""What Megatron's lines say in the dialects of 2021 to 2026, and what they leave out; all are invented."""

from __future__ import annotations

import math
from datetime import datetime

import pytest

from sources.formats.told import events, faults, steps, told
from train_ledger.facts import Event, Step
from train_ledger.sources.formats.megatron.megatron import Megatron


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def line(number: int, front: str = "", **values: str) -> str:
    """A line of an iteration; `loss` and the like may be left out by an empty text."""
    said = {
        "elapsed time per iteration (ms)": "2000.0",
        "learning rate": "3.000E-04",
        "lm loss": "2.500000E+00",
        "loss scale": "1.0",
        "grad norm": "0.500",
        "number of skipped iterations": "  0",
        "number of nan iterations": "  0",
        **{name.replace("_", " "): value for name, value in values.items()},
    }
    pieces = " | ".join(f"{name}: {value}" for name, value in said.items() if value)
    return f"{front} iteration {number:8d}/   90000 | {pieces} |"


DIALECTS = {
    "2024, two names in one piece": (
        " iteration       10/   90000 | elapsed time per iteration (ms): 2500.0 | iteration time: 2.500 s"
        " samples/sec: 3.5 | tokens/sec/gpu: 8000.5 | consumed tokens: 1.25B | eta: 0:02:11 |"
        " lm loss: 4.0E+00 |",
        {
            "step_time_s": 2.5,
            "samples_per_second": 3.5,
            "tps": 8000.5,
            "consumed_tokens": 1.25e9,
            "loss": 4.0,
        },
    ),
    "2019, names without a sign": (
        " iteration      500/     600 | elapsed time per iteration (ms): 792.5 | learning rate 1.500E-05 |"
        " lm loss 8.125000E-04 | loss scale 8192.0 |",
        {"step_time_s": 0.7925, "lr": 1.5e-5, "loss": 8.125e-4, "loss_scale": 8192.0},
    ),
    "nanotron, in thousands and with the time that remains": (
        "02/03 04:05:06 [INFO|DP=0|TP=0|node-07]: iteration: 1200 / 90000 | consumed_tokens: 2.5G |"
        " time_per_iteration_ms: 8.75K | tokens_per_sec: 182K | tokens_per_sec_per_gpu: 700 |"
        " grad_norm: 0.125 | lm_loss: 2.25 | lr: 0.0001 | model_tflops_per_gpu: 15.5 | eta: 13 days, 1:45:39",
        {
            "consumed_tokens": 2.5e9,
            "step_time_s": 8.75,
            "tokens_per_sec": 182000.0,
            "tps": 700.0,
            "grad_norm": 0.125,
            "loss": 2.25,
            "lr": 1e-4,
            "tflops": 15.5,
        },
    ),
    "2021, no time, no loss scale that moves": (
        " iteration      120/   90000 | consumed samples:        61440 | elapsed time per iteration"
        " (ms): 1480.5 |"
        " learning rate: 1.250E-04 | global batch size:   512 | lm loss: 3.141593E+00 | loss scale: 65536.0 |"
        " grad norm: 0.875 | number of skipped iterations:   0 | number of nan iterations:   0 |",
        {
            "consumed_samples": 61440.0,
            "step_time_s": 1.4805,
            "lr": 1.25e-4,
            "global_batch_size": 512.0,
            "loss": 3.141593,
            "loss_scale": 65536.0,
            "grad_norm": 0.875,
            "skipped": 0.0,
            "nan_iterations": 0.0,
        },
    ),
    "2021, DeepSpeed's, with placeholders": (
        " iteration        7/    1000 | elapsed time per iteration (ms): 98000.0 | lm-loss: 9.500000E+00 |"
        " loss scale: -1.0 | grad norm: 0.000 | num zeros: 0.0 | number of skipped iterations:   0 |",
        {"step_time_s": 98.0, "loss": 9.5, "skipped": 0.0},
    ),
    "2022, in seconds, through torchrun": (
        "[default5]: iteration    20000/  115000 | consumed tokens:  30000000000 | elapsed time per"
        " iteration (s):"
        " 88.25 | lm loss: 2.125000E+00 | grad norm: 0.140 | samples per second: 23.200 | TFLOPs: 151.50 |",
        {
            "consumed_tokens": 3e10,
            "step_time_s": 88.25,
            "loss": 2.125,
            "grad_norm": 0.14,
            "samples_per_second": 23.2,
            "tflops": 151.5,
        },
    ),
    "2023, tokens per GPU": (
        "3:  iteration        4/   30000 | elapsed time per iteration (ms): 15000.0 | lm loss: 1.150000E+01 |"
        " actual seqlen:  4096 | samples per second: 1.070 | tokens per gpu per second (tgs): 548.250 |"
        " TFLOPs: 26.10 |",
        {
            "step_time_s": 15.0,
            "loss": 11.5,
            "actual_seqlen": 4096.0,
            "samples_per_second": 1.07,
            "tps": 548.25,
            "tflops": 26.1,
        },
    ),
    "2023, throughput without a unit": (
        " iteration       10/   90000 | elapsed time per iteration (ms): 900.0 | throughput per GPU: 212.5 |"
        " lm loss: 4.0E+00 | params norm: 318.250 |",
        {"step_time_s": 0.9, "tflops": 212.5, "loss": 4.0, "param_norm": 318.25},
    ),
    "2024, with experts": (
        " [2024-05-06 07:08:09] iteration       70/     100 | elapsed time per iteration (ms): 5000.0 |"
        " throughput per"
        " GPU (TFLOP/s/GPU): 243.0 | lm loss: 1.75E+00 | load_balancing_loss: 1.03E+00 | mtp_1 loss:"
        " 2.25E+00 |"
        " num zeros: 12.0 |",
        {
            "step_time_s": 5.0,
            "tflops": 243.0,
            "loss": 1.75,
            "load_balancing_loss": 1.03,
            "mtp_1_loss": 2.25,
            "num_zeros_in_grad": 12.0,
        },
    ),
    "2024, names with equals signs": (
        "[2024-05-06 07:08:09.250000][INFO][training_log:661] -  iteration=       1/  400000 |"
        " consumed_samples="
        "     512 | elapsed_time_per_iteration_ms=24000.0 | learning_rate=7.5e-09 | lm loss=11.250000 |"
        " grad_norm=6.500 | tokens_per_gpu_per_second_tgs=4100.500 | [LM]TFLOPs=21.25 | [DS]TFLOPs=27.50 |",
        {
            "consumed_samples": 512.0,
            "step_time_s": 24.0,
            "lr": 7.5e-9,
            "loss": 11.25,
            "grad_norm": 6.5,
            "tps": 4100.5,
            "tflops": 21.25,
            "ds_tflops": 27.5,
        },
    ),
    "2025, Primus, last and average": (
        "[20250607 08:09:10][rank-15/16][INFO ] [--------trainer.py:2500] :  iteration 130/ 5000 |"
        " elapsed time per"
        " iteration (ms): 12500.0/12600.0 | hip mem usage/free/total/usage_ratio:"
        " 128.00GB/64.00GB/192.00GB/66.67% |"
        " throughput per GPU (TFLOP/s/GPU): 510.0/505.5 | tokens per GPU (tokens/s/GPU): 9600.0/9550.0 |"
        " lm loss: 6.25E-03 |",
        {
            "step_time_s": 12.5,
            "step_time_s_avg": 12.6,
            "hip_mem_usage": 128.0 * 2**30,
            "hip_mem_free": 64.0 * 2**30,
            "hip_mem_total": 192.0 * 2**30,
            "hip_mem_usage_ratio": 66.67,
            "tflops": 510.0,
            "tflops_avg": 505.5,
            "tps": 9600.0,
            "tps_avg": 9550.0,
            "loss": 0.00625,
        },
    ),
    "2026, power, reinforcement learning": (
        " [2026-02-03 04:05:06.500000] iteration        9/infinity | skipped samples:            8 |"
        " elapsed time per"
        " iteration (ms): 800.0 | energy per GPU (J/iter/GPU): 410.5 | power per GPU (W/GPU): 513.1 |"
        " lm loss: 1.5E-01 | max attention logit: 41.5 |",
        {
            "skipped_samples": 8.0,
            "step_time_s": 0.8,
            "energy_per_gpu_j_iter_gpu": 410.5,
            "power_per_gpu_w_gpu": 513.1,
            "loss": 0.15,
            "max_attn_logit": 41.5,
        },
    ),
    "GPT-NeoX, its rate in front": (
        " samples/sec: 41.500 | iteration       50/  320000 | elapsed time per iteration (ms): 780.0 |"
        " learning rate:"
        " 1.5E-05 | approx flops per GPU: 46.5TFLOPS | lm_loss: 9.75E+00 | number of skipped iterations:"
        "   0 |",
        {
            "samples_per_second": 41.5,
            "step_time_s": 0.78,
            "lr": 1.5e-5,
            "tflops": 46.5,
            "loss": 9.75,
            "skipped": 0.0,
        },
    ),
    "NeMo, without an end": (
        "Training epoch 0, iteration 28/99 | lr: 5.5e-06 | global_step: 28 | reduced_train_loss: 2.75 |"
        " train_step_timing in s: 0.25 | tokens_per_sec_per_gpu: 1.05e+04 | consumed_samples: 928",
        {
            "lr": 5.5e-6,
            "global_step": 28.0,
            "loss": 2.75,
            "step_time_s": 0.25,
            "tps": 10500.0,
            "consumed_samples": 928.0,
        },
    ),
}


@pytest.mark.parametrize(("text", "values"), DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_tells_its_numbers_by_our_names_and_units(text, values) -> None:
    (step,) = steps(Megatron(), text)
    told_values = {name: it for name, it in step.values.items() if name != "total_iterations"}
    assert told_values == pytest.approx(values)


def test_the_total_is_told_when_it_changes() -> None:
    lines = [
        line(1),
        line(2),
        line(3).replace("/   90000", "/   95000"),
        line(4).replace("/   90000", "/infinity"),
    ]
    found = [it.values.get("total_iterations") for it in steps(Megatron(), *lines)]
    assert found == [90_000.0, None, 95_000.0, None]


@pytest.mark.parametrize(
    ("front", "rank", "host", "t"),
    [
        ("", None, None, None),
        ("[default7]:", None, None, None),
        ("[rank3]:", 3, None, None),
        ("0: ", None, None, None),
        ("node-07: ", None, "node-07", None),
        ("node-07: [rank11]:", 11, "node-07", None),
        ("INFO: ", None, None, None),
        ("==>", None, None, None),
        (" [2025-04-13 23:41:12]", None, None, "2025-04-13 23:41:12"),
        ("[rank3]: [2026-04-13 23:41:12.250000]", 3, None, "2026-04-13 23:41:12.250"),
        ("[20251202 09:12:08][rank-7/8][INFO ] [--------trainer.py:2560] :", 7, None, "2025-12-02 09:12:08"),
        ("\x1b[32m[20251202 09:12:08\x1b[0m][rank-7/8][INFO ] :\x1b[1m", 7, None, "2025-12-02 09:12:08"),
        (
            "[2025-11-20T14:55:23+08:00] retraining/0 Training epoch 0,",
            None,
            None,
            "2025-11-20 14:55:23+08:00",
        ),
    ],
)
def test_the_front_tells_rank_host_and_time_where_it_does(front, rank, host, t) -> None:
    (step,) = steps(Megatron(), line(5, front))
    assert (step.step, step.rank, step.host) == (5, rank, host)
    assert step.t == at(t) if t else math.isnan(step.t)


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("6.05e-06", 6.05e-6),
        ("1E+1", 10.0),
        ("-1.0", -1.0),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("1,234.5", 1234.5),
        (".5", 0.5),
    ],
)
def test_numbers_keep_their_exponent_sign_and_infinity(written, number) -> None:
    (step,) = steps(Megatron(), line(1, lm_loss=written))
    assert step.values["loss"] == number


def test_a_number_that_is_none_is_left_out_and_nan_stays_nan() -> None:
    first, second = steps(Megatron(), line(1, lm_loss="N/A"), line(2, lm_loss="nan"))
    assert "loss" not in first.values
    assert math.isnan(second.values["loss"])


def test_both_spellings_of_a_throughput_are_one_field_and_unknown_fields_pass() -> None:
    found = steps(
        Megatron(),
        line(1, TFLOPs="150.0"),
        line(2, **{"throughput per GPU (TFLOP/s/GPU)": "151.0", "something new (J)": "7"}),
    )
    assert [it.values["tflops"] for it in found] == [150.0, 151.0]
    assert found[1].values["something_new_j"] == 7.0


def test_skips_are_counted_on_within_the_attempt_from_the_first_line() -> None:
    skips = [(10, 10), (20, 8), (30, 1), (40, 0)]
    lines = [line(step, number_of_skipped_iterations=f"{it:3d}") for step, it in skips]
    again = line(20, number_of_skipped_iterations="  2")
    found = steps(Megatron(), *lines, again)
    assert [it.values["skipped"] for it in found] == [10, 18, 19, 19, 2]


def test_the_same_line_twice_counts_its_skips_once() -> None:
    twice = [line(10, number_of_skipped_iterations="  4")] * 2
    assert [it.values["skipped"] for it in steps(Megatron(), *twice)] == [4, 4]


def test_a_loss_that_vanished_while_nothing_was_skipped_may_be_nan() -> None:
    lines = [line(10), line(20, lm_loss="", grad_norm="nan"), line(30, lm_loss="", grad_norm="nan"), line(40)]
    (fault,) = faults(Megatron(), *lines)
    assert (fault.fault, fault.step, fault.source) == ("nan_suspected", 20, "train.log:2")
    assert "left out" in fault.details["why"]
    assert fault.details["grad_norm"] == "NaN"


def test_it_is_told_with_a_finite_norm_too_and_again_after_it_was_well() -> None:
    lines = [line(10), line(20, lm_loss=""), line(30), line(40, lm_loss="")]
    assert [it.step for it in faults(Megatron(), *lines)] == [20, 40]


def test_a_filtered_nan_shows_in_the_norm() -> None:
    (fault,) = faults(Megatron(), line(10), line(20, grad_norm="nan"))
    assert (fault.step, fault.details["grad_norm"], fault.details["loss"]) == (20, "NaN", 2.5)
    assert "gradient" in fault.details["why"]


@pytest.mark.parametrize(
    "lines",
    [
        [line(10, lm_loss="", number_of_skipped_iterations=" 10", grad_norm="")],
        [line(10), line(20, lm_loss="", number_of_skipped_iterations="  3", grad_norm="inf")],
        [line(10, lm_loss=""), line(20, lm_loss="")],
        [line(10, lm_loss="4.0E-04"), line(20, lm_loss="")],
        [line(10, lm_loss="-1.0E-01"), line(20, lm_loss="")],
        [it.replace("/   90000", "/infinity") for it in (line(10), line(20, lm_loss=""))],
        [line(10), " validation loss at iteration 10 | lm loss PPL: 1.2E+01 |"],
        [line(10), line(20, lm_loss="", number_of_skipped_iterations="")],
    ],
    ids=["warm-up", "skipped", "never had one", "near 0", "negative", "endless", "evaluation", "cannot tell"],
)
def test_what_explains_a_missing_loss_is_no_suspicion(lines) -> None:
    assert faults(Megatron(), *lines) == []


def test_what_the_wall_shows_beyond_the_iterations_was_spent_elsewhere() -> None:
    first = line(100, " [2025-01-02 03:04:05]", **{"elapsed time per iteration (ms)": "1000.0"})
    second = line(110, " [2025-01-02 03:04:21]", **{"elapsed time per iteration (ms)": "1069.8"})
    third = line(120, " [2025-01-02 03:04:32]", **{"elapsed time per iteration (ms)": "1050.0"})
    found = steps(Megatron(), first, second, third)
    assert [it.values.get("outside_steps_s") for it in found] == [None, pytest.approx(5.302), None]


def test_no_time_is_taken_across_a_restart() -> None:
    lines = [
        line(100, " [2025-01-02 03:04:05]"),
        "[before the start of training step] datetime: 2025-01-02 05:00:00 ",
        line(110, " [2025-01-02 05:01:00]"),
    ]
    assert "outside_steps_s" not in steps(Megatron(), *lines)[-1].values


WRAPPED = (
    "[default7]: iteration      300/ 9000 | consumed samples:    61440 | elapsed time per iteration"
    " (ms): 1500.0 | learning",
    " rate: 4.500E-05 | global batch size: 512 | lm loss: 2.250000E+00 | number of nan",
    "iterations:  0 | samples per second: 19.500 | TFLOPs: 149.25 |",
)


def test_a_line_that_was_broken_is_put_together() -> None:
    reader = Megatron()
    (step,) = told(reader, *WRAPPED)
    assert (step.step, step.source) == (300, "train.log:1")
    assert step.values["lr"] == 4.5e-5
    assert (step.values["loss"], step.values["nan_iterations"], step.values["tflops"]) == (2.25, 0.0, 149.25)
    assert not reader.damaged


def test_a_number_that_was_broken_is_put_together() -> None:
    first, second = line(5).split("2.500000E+00")
    (step,) = steps(Megatron(), f"{first}2.50", f"0000E+00{second}")
    assert step.values["loss"] == 2.5


@pytest.mark.parametrize("after", ["12 | a table | 3 |", "| nothing | here |", "12", " 40%|####      | 4/10"])
def test_a_line_without_an_end_does_not_take_in_what_is_not_its_own(after) -> None:
    text = "Training epoch 0, iteration 28/99 | reduced_train_loss: 2.75 | consumed_samples: 928"
    (step,) = steps(Megatron(), text, after)
    assert step.values["consumed_samples"] == 928.0


def test_a_line_that_ends_within_a_name_is_read_as_far_as_it_goes_and_counted() -> None:
    reader = Megatron()
    found = steps(reader, line(4).partition("grad norm")[0] + "grad no", line(5))
    assert [it.step for it in found] == [4, 5]
    assert found[0].values["loss"] == 2.5
    assert reader.damaged == {"an iteration's line that breaks off": 1}


def test_what_another_rank_wrote_behind_a_line_is_not_of_it() -> None:
    (step,) = steps(Megatron(), line(5) + "[default2]: lm loss: 9.0 | grad norm: 7.0 |")
    assert (step.values["loss"], step.values["grad_norm"]) == (2.5, 0.5)


@pytest.mark.parametrize(
    "text",
    [
        "    log_string = f' iteration {iteration:8d}/{total:8d} | lm loss: {loss:.6E} |'",
        '    print("iteration 5/ 100 | lm loss: 1.0E+00 |")',
        "# iteration 5/ 100 | lm loss: 1.0E+00 |",
        "steps_done = 'iteration 5/100 | elapsed time per iteration (ms): 5.0 |'",
        "iteration 5/100 | how it went: well |",
        "iteration 5/100 | 3 files |",
        " | iteration | lm loss: 5.0 |",
        "    print_datetime('exiting program at iteration 500')",
        "    print_rank_0('saving checkpoint at iteration 7 to {}'.format(path))",
    ],
)
def test_source_code_and_other_programs_are_not_taken_for_a_step(text) -> None:
    assert told(Megatron(), text) == []


def test_the_life_of_a_run_is_events() -> None:
    found = events(
        Megatron(),
        "using world size: 16, data-parallel size: 2, tensor-model-parallel size: 4,"
        " pipeline-model-parallel size: 2",
        " successfully loaded checkpoint from /ckpt/run [ t 1/4, p 1/2 ] at iteration 400",
        "[before the start of training step] datetime: 2025-01-02 03:04:05 ",
        line(500),
        "saving checkpoint at iteration     500 to /ckpt/run in torch_dist format",
        "  successfully saved checkpoint from iteration     500 to /ckpt/run [ t 1/4, p 1/2 ]",
        "[exiting program after receiving SIGTERM.] datetime: 2025-01-02 04:04:05 ",
    )
    assert [(it.name, it.step, dict(it.details)) for it in found] == [
        ("run_start", None, {"world_size": 16}),
        ("ckpt_loaded", 400, {"path": "/ckpt/run"}),
        ("phase_end", None, {"phase": "start_up"}),
        ("ckpt_start", 500, {"path": "/ckpt/run"}),
        ("ckpt_saved", 500, {"path": "/ckpt/run", "durable": True}),
        ("signal", None, {"number": 15}),
        ("run_end", None, {"reason": "after receiving SIGTERM"}),
    ]
    assert (found[2].t, found[-1].t) == (at("2025-01-02 03:04:05"), at("2025-01-02 04:04:05"))


@pytest.mark.parametrize(
    ("text", "step", "reason"),
    [
        ("[exiting program at iteration 6000] datetime: 2025-01-02 04:04:05 ", 6000, "at iteration 6000"),
        ("exiting program at iteration 6000", 6000, "at iteration 6000"),
        ("[exiting program after 55.0 minutes] datetime: 2025-01-02 04:04:05 ", None, "after 55.0 minutes"),
        ("[after training is done] datetime: 2025-01-02 04:04:05 ", None, "training is done"),
        ("  successfully saved checkpoint at iteration    6000 to /ckpt", 6000, None),
    ],
)
def test_each_wording_of_an_end_and_of_an_old_save(text, step, reason) -> None:
    (event,) = events(Megatron(), text)
    assert (event.step, event.details.get("reason")) == (step, reason)


@pytest.mark.parametrize(
    ("text", "step", "values"),
    [
        (" validation loss at iteration 50 | {}", 50, {"val_loss": 2.5, "val_ppl": 12.0}),
        ("[default7]:valid loss at iteration 50 | {}", 50, {"val_loss": 2.5, "val_ppl": 12.0}),
        (" validation loss at iteration 50 on validation set | {}", 50, {"val_loss": 2.5, "val_ppl": 12.0}),
        (" validation loss at iteration 50 on test set | {}", 50, {"test_loss": 2.5, "test_ppl": 12.0}),
        ("0: validation loss at iteration 50 [web] | {}", 50, {"val_web_loss": 2.5, "val_web_ppl": 12.0}),
        (" validation results at iteration 50 | {}", 50, {"val_loss": 2.5, "val_ppl": 12.0}),
        (
            " validation loss at the end of training for test data | {}",
            40,
            {"test_loss": 2.5, "test_ppl": 12.0},
        ),
    ],
)
@pytest.mark.parametrize(
    "result",
    ["lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 | ", "lm_loss value: 2.5 | lm_loss_ppl value: 12 |"],
)
def test_an_evaluation_is_a_step_of_its_own_values_and_the_end_of_a_phase(text, step, values, result) -> None:
    _, evaluated, ended = told(Megatron(), line(40), text.format(result))
    assert isinstance(evaluated, Step)
    assert (evaluated.step, evaluated.values) == (step, values)
    assert isinstance(ended, Event)
    assert (ended.name, ended.step) == ("eval_end", step)


def test_each_rank_tells_its_memory_in_megabytes() -> None:
    text = (
        "[Rank 12] (after 20 iterations) memory (MB) | allocated: 1.5 | max allocated: 2.0 |"
        " reserved: 3.0 | max reserved: 4.0"
    )
    (step,) = steps(Megatron(), text)
    assert (step.step, step.rank) == (20, 12)
    assert step.values == {
        "mem_allocated": 1.5 * 2**20,
        "mem_allocated_peak": 2.0 * 2**20,
        "mem_reserved": 3.0 * 2**20,
        "mem_reserved_peak": 4.0 * 2**20,
    }


def test_two_ranks_may_write_into_one_line() -> None:
    text = "".join(f"[Rank {it}] (after 2 iterations) memory (MB) | max allocated: {it}.0" for it in (3, 5))
    found = steps(Megatron(), text)
    assert [(it.rank, it.values["mem_allocated_peak"] / 2**20) for it in found] == [(3, 3.0), (5, 5.0)]


def test_memory_without_a_rank_is_of_no_rank() -> None:
    (step,) = steps(Megatron(), "after 1 iterations memory (MB) | allocated: 1.0 | max allocated: 2.0")
    assert (step.step, step.rank) == (1, None)


STRAGGLERS = (
    "0: INFO:megatron.core.utils:[2025-01-02 03:04:05] | MnRtt/Rnk: 3000.50ms/8 | MxRtt/Rnk: 3400.00ms/3 |"
    " MnPwr/Rnk: 600000W/8 | MxPwr/Rnk: 680W/18 | MnTmp/Rnk: 50C/0 | MxTmp/Rnk: 61C/3 | MnUtl/Rnk: 97%/8 |"
    " MnClk/Rnk: 1410MHz/3 | MxClk/Rnk: 1980MHz/0 | MxDRtt/Rnk: 34.50ms/3 | MnEtpt/Rnk: 296.25TF/3"
)


def test_the_straggler_detector_tells_of_each_rank_that_it_names() -> None:
    found = {it.rank: it for it in steps(Megatron(), line(10), STRAGGLERS)}
    assert found[3].step == 10
    assert found[3].t == at("2025-01-02 03:04:05")
    assert found[3].values == {
        "traced_s": 3.4,
        "gpu_temperature_c": 61.0,
        "gpu_clock_mhz": 1410.0,
        "data_wait_s": 0.0345,
        "estimated_tflops": 296.25,
    }
    assert found[8].values == {"traced_s": 3.0005, "gpu_power_w": 600.0, "gpu_utilization_percent": 97.0}
    assert found[18].values == {"gpu_power_w": 680.0}


def test_its_report_in_a_log_without_iterations_is_of_no_step() -> None:
    found = events(Megatron(), STRAGGLERS)
    assert {(it.name, it.rank, it.step) for it in found} == {
        ("straggler_report", rank, None) for rank in (0, 3, 8, 18)
    }
