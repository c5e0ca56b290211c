"""Lines of trainers, damaged in every way: nothing raises, and time grows with the length of a line alone."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sources.formats.told import told
from train_ledger.facts import Event, Fault, Step
from train_ledger.fields import EVENTS
from train_ledger.sources.formats.deepspeed.deepspeed import DeepSpeed
from train_ledger.sources.formats.deepspeed.deepspeed_csv import DeepSpeedCsv
from train_ledger.sources.formats.hugging_face.hf_trainer import HfTrainer
from train_ledger.sources.formats.megatron.megatron import Megatron
from train_ledger.sources.formats.megatron.megatron_progress import MegatronProgress
from train_ledger.sources.formats.nanogpt.nanogpt import NanoGpt
from train_ledger.sources.formats.torchtitan.torchtitan import Torchtitan
from train_ledger.sources.formats.torchtitan.torchtitan_spans import TorchtitanSpans
from train_ledger.sources.lines.log_line import LogLine, read_line

FORMATS = (Megatron, DeepSpeed, NanoGpt)
OWNERS = (MegatronProgress, DeepSpeedCsv)
OWN_EVENTS = {"process_end", "signal_sent", "straggler_report", "note", "timers", "engine_start"}
LINES = (
    " iteration      120/   90000 | consumed samples:        61440 | elapsed time per iteration (ms):"
    " 1480.5 |"
    " learning rate: 1.250E-04 | lm loss: 3.141593E+00 | grad norm: 0.875 | number of skipped iterations:"
    "   0 |",
    "[20250607 08:09:10][rank-15/16][INFO ] [--------trainer.py:2500] :  iteration 130/ 5000 | elapsed"
    " time per"
    " iteration (ms): 12500.0/12600.0 | hip mem usage/free/total/usage_ratio:"
    " 128.00GB/64.00GB/192.00GB/66.67% |",
    " samples/sec: 41.500 | iteration       50/infinity | approx flops per GPU: 46.5TFLOPS | lm_loss: nan |",
    "Training epoch 0, iteration 28/99 | lr: 5.5e-06 | reduced_train_loss: 2.75 | consumed_samples: 928",
    "time (ms) | forward-compute: 120.00 | backward-compute: 240.50 | optimizer: 15.00 | batch-generator:"
    " 2.50",
    "(min, max) time across ranks (ms):",
    "    forward-compute ................................: (120.00, 150.00)",
    "times across ranks (ms):",
    "  forward-compute:",
    "     rank 11: 150.00",
    " validation loss at iteration 50 on test set | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 |",
    "[Rank 12] (after 20 iterations) memory (MB) | allocated: 1.5 | max allocated: 2.0 | reserved: 3.0",
    "0: INFO:x:[2025-01-02 03:04:05] | MnRtt/Rnk: 3000.50ms/8 | MxRtt/Rnk: 3400.00ms/3 | MnPwr/Rnk:"
    " 600000W/8",
    "saving checkpoint at iteration     500 to /ckpt/run in torch_dist format",
    "  successfully saved checkpoint from iteration     500 to /ckpt/run [ t 1/4, p 1/2 ]",
    " successfully loaded checkpoint from /ckpt/run [ t 1/4, p 1/2 ] at iteration 400",
    "[exiting program after receiving SIGTERM.] datetime: 2025-01-02 04:04:05 ",
    "[2024-05-06 07:08:09,125] [INFO] [logging.py:96:log_dist] [Rank 0] step=40, skipped=6, lr=[1.5e-05,"
    " 1e-05],"
    " mom=[(0.9, 0.95), (0.9, 0.95)]",
    "epoch=0/micro_step=80/global_step=40, RunningAvgSamplesPerSec=150.5, CurrSamplesPerSec=151.25,"
    " MemAllocated=2.5GB",
    "steps: 12 loss: 5.5000 lm loss: 5.2500 iter time (s): 0.750 samples/sec: 170.500",
    "[deepspeed] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 65536, reducing to 32768",
    "Grad overflow on iteration 5",
    "Reducing dynamic loss scale from 1024 to 512.0",
    "time (ms) | fwd: 10.00 | bwd: 40.00 | bwd_inner: 36.00 | bwd_allreduce: 0.00 | step: 3.00",
    "[Torch] Checkpoint global_step500 is ready now!",
    "[2024-05-06 07:08:09,125] [INFO] [launch.py:460:main] Process 4100 exits successfully.",
    "epoch: 0|step: 3|ppo_ep: 1|act_loss: 0.25|cri_loss: -0.125|unsuper_loss: 0.0",
    "|E2E latency=8.00s |Gather latency=0.00s (0.00%) |Others=0.50 (6.25%)|CurSamplesPerSec=8.00 |",
    "End-to-End => Latency: 12.50s, TFLOPs: 18.25, Samples/sec: 2.5, Time/seq 0.40s, Batch Size: 32",
    "iter 40: loss 3.5000, time 250.00ms, mfu 17.50%",
    "step 250: train loss 2.1, val loss 2.2",
    "s:95 trl:3.25 lr:0.0006 norm:0.50",
    "step    7/19560 | loss 7.625000 (+0.25z)| norm 1.2500 (-1.5z)| lr 6.0e-04 | 250.50 ms | 42.5% bf16"
    " MFU |",
    "step 00005/21400 (0.02%) | loss: 8.5 | lrm: 0.50 | dt: 2800.00ms | tok/sec: 18,724 | bf16_mfu: 41.5",
    "step:11/100 val_loss:3.5 train_time:1126ms step_avg:102.36ms",
    "2025-03-04 06:06:07\tJob ID: 4711\t# GPUs: 128\tSaved checkpoint\tIteration: 500\tTokens (in"
    " billions): 2.05",
    "step,train_loss",
    "64,5.5",
)
PIECES = (
    *(
        "|",
        " | ",
        ":",
        ": ",
        "=",
        "/",
        "(",
        ")",
        "[",
        "]",
        "\t",
        " ",
        "\0",
        "\x1b[31m",
        "\u0130",
        "\ud55c",
        "…",
    ),
    *("nan", "inf", "1e999", "-1.0", "9" * 400, "0" * 20, "1e-400", "1_0", "1,0,0", "99999999999999999999"),
    *(
        "iteration",
        "infinity",
        "time (ms) |",
        "across ranks (ms):",
        "step=",
        "loss",
        "\u0661\u0662",
        "٣",
        "²",
    ),
)
words = st.sampled_from([*LINES, *PIECES]) | st.text(max_size=12)


def mutated(line: str, random_: random.Random) -> str:
    """The line with a few places cut, doubled, swapped with another line's or spoiled."""
    for _ in range(random_.randint(1, 4)):
        at, until = sorted(random_.randint(0, len(line)) for _ in range(2))
        with_ = random_.choice(
            (random_.choice(PIECES), line[at:until] * 2, random_.choice(LINES)[at:until], "")
        )
        line = (line[:at] + with_ + line[until:])[:4000]
    return line


def check(facts) -> None:
    for fact in facts:
        if isinstance(fact, Step):
            assert isinstance(fact.step, int)
            assert all(name and isinstance(it, float) for name, it in fact.values.items())
        elif isinstance(fact, Event):
            assert fact.name in OWN_EVENTS or fact.name in EVENTS
        else:
            assert isinstance(fact, Fault)
            assert fact.fault == "nan_suspected"


def read_all(lines: list[str]) -> None:
    for kind in FORMATS:
        check(told(kind(), *lines))
    for kind in OWNERS:
        reader = kind()
        for line in lines:
            check(reader.read(LogLine(line), "f:1"))
        check(reader.end())


@given(st.lists(st.lists(words, min_size=1, max_size=6).map("".join), min_size=1, max_size=6))
@settings(max_examples=300, deadline=None)
def test_no_line_raises(lines) -> None:
    read_all([line.encode("utf-8", "replace").decode() for line in lines])


@pytest.mark.parametrize("seed", range(4))
def test_mutated_lines_raise_nothing(seed) -> None:
    random_ = random.Random(seed)
    read_all([mutated(random_.choice(LINES), random_) for _ in range(2500)])


@pytest.mark.slow
def test_a_hundred_thousand_mutated_lines_raise_nothing() -> None:
    random_ = random.Random(7)
    for _ in range(100):
        read_all([mutated(random_.choice(LINES), random_) for _ in range(1000)])


REPEATED = (
    *(" ", "|", " | ", "a", "1", "9.", "1e", ": ", "a: 1 | ", "a=1|", "a/", "[", "[rank-1/8]", "a b ", "-"),
    *("_", "iteration 1/2 |", "0: ", "time (ms) | ", "a: 1/2/3 | ", "MnRtt/Rnk: 1ms/8 | ", "x.", "...."),
    *("(1.0, 2.0)", "step=1, skipped=1, ", "lr=[1.0, ", "loss: 1 ", "steps: 1 loss: ", "iter time (s): "),
    *(" a:1", "trl:1 ", "Rank 1 ", "[Rank 1] (after 1 iterations) ", "2025-01-02 03:04:05 ", "1,000,"),
    *("[2025-01-02 03:04:05]", "lm loss value: 1 | ", "validation loss at ", "\u00b2"),
    "successfully saved checkpoint from iteration ",
)  # fmt: skip
HEADS = ("", *(line[: len(line) // 2] for line in LINES))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_long_line_costs_time_in_proportion_to_its_length(kind) -> None:
    for head in HEADS:
        for piece in REPEATED:
            text = head + piece * (16_384 // len(piece))
            line = read_line(text.encode())
            reader = kind()
            began_s = time.thread_time()
            check(reader.read(line, "f:1"))
            check(reader.end())
            assert time.thread_time() - began_s < 2, (head, piece)


def test_lines_of_nccl_hold_no_mark() -> None:
    line = (
        b"node-3:4711:4720 [2] NCCL INFO Channel 00/02 : 0[1a000] -> 1[1c000] via P2P/IPC comm 0x14ea rank 5"
    )
    for kind in FORMATS:
        assert not any(mark in line for mark in kind.marks)


class TestALogsOwnNames:
    """Names in a log are its own; none of them is taken for one of ours."""

    @pytest.mark.parametrize("name", ["step", "name", "self"])
    def test_in_a_validation(self, name: str) -> None:
        line = f"validate step: 20  {name}: 3  loss:  6.1  memory: 41.00GiB(51.25%)  tps: 9,000"
        (event,) = told(Torchtitan(), line)
        assert (event.step, event.details[name], event.details["loss"]) == (20, 3.0, 6.1)

    @pytest.mark.parametrize("name", ["step", "name", "self", "split"])
    def test_in_a_summary(self, name: str) -> None:
        (event,) = told(HfTrainer(), "***** train metrics *****", f"  {name}   =   3", "  loss   =   2.5")
        assert (event.name, event.details["split"], event.details["loss"]) == ("run_end", "train", 2.5)

    @pytest.mark.parametrize("name", ["name", "self"])
    def test_of_a_scalar_before_the_first_step(self, name: str) -> None:
        record = {"log_type": "event", "log_type_name": "metric_value", "event_name": name, "value": 3.0}
        (event,) = TorchtitanSpans().read(LogLine(json.dumps(record)), "x.jsonl:1")
        assert event.details[name] == 3.0
