"""Lines of every format that is read, and what can happen to a line on its way into a log.

All lines are invented. A line is mutated by what a full disk, two writers in one file, a terminal or a
hostile program does to it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

__all__ = ["LINES", "OWNED", "mutated"]

LINES: tuple[str, ...] = (
    " [2026-02-03 04:05:06] iteration       70/     100 | consumed samples:         8960 | elapsed time per "
    "iteration (ms): 5360.0 | throughput per GPU (TFLOP/s/GPU): 243.0 | learning rate: 1.400000E-05 | global "
    "batch size:   128 | lm loss: 1.937500E+00 | loss scale: 1.0 | grad norm: 1.250 | number of skipped "
    "iterations:   0 | number of nan iterations:   0 |",
    "[default7]: iteration    4100/  98304 | consumed samples: 25990 | elapsed time per iteration (s): "
    "105.10 | "
    "lm-loss: nan | grad norm: 0.000 | number of skipped iterations:   1 | number of nan iterations:   1 | "
    "TFLOPs: 149.02 |",
    " validation loss at iteration 1000 | lm loss value: 2.350000E+00 | lm loss PPL: 1.040000E+01 | ",
    "  successfully saved checkpoint from iteration    1000 to /ckpt [ t 1/1, p 1/1 ]",
    "(min, max) time across ranks (ms):",
    "    forward-backward ...............................: (1000.10, 1100.20)",
    "time (ms) | forward: 10.00 | backward: 20.00 | optimizer: 3.00 | batch generator: 1.00",
    "MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: 3468.20ms/0 | MnPwr/Rnk: 601.96W/8 | MxPwr/Rnk: 683.80W/18 |",
    "steps: 10 loss: 2.5000 iter time (s): 1.250 samples/sec: 51.200",
    "[2026-02-03 04:05:06,142] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=6, lr=[1e-05, "
    "1e-05], "
    "mom=[(0.9, 0.95), (0.9, 0.95)]",
    "[2026-02-03 04:05:06,142] [INFO] [timer.py:199:stop] epoch=0/micro_step=10/global_step=10, "
    "RunningAvgSamplesPerSec=12.5, CurrSamplesPerSec=12.4, MemAllocated=3.96GB, MaxMemAllocated=9.1GB",
    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
    "epoch: 0|step: 3|ppo_ep: 1|act_loss: 0.05|cri_loss: 0.08|unsuper_loss: 0.0",
    "|E2E latency=7.99s |Gather latency=0.00s |Generate time=5.26s (65.81%) |Training time=2.70s (33.79%)",
    "[rank0]:[titan] 2026-02-03 04:05:06,007 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.20000  "
    "\x1b[33mgrad_norm:  2.5000  \x1b[34mmemory: 40.00GiB(50.00%)  tps: 3,400  tflops: 130.20  mfu: "
    "13.16%\x1b[39m",
    "[titan] 2026-02-03 04:05:06,007 - root - INFO - validate step: 20  loss:  6.1000  memory: "
    "41.00GiB(51.25%)  tps: 9,000",
    "***** train metrics *****",
    "  epoch                    =     2.99",
    "  split                    =        1",
    "[titan] 2026-02-03 04:05:06,007 - root - INFO - Finished saving the checkpoint in 3.20 seconds.",
    "{'loss': '1.922', 'grad_norm': '0.6', 'learning_rate': '2e-05', 'epoch': '0.13'}",
    "{'loss': nan, 'grad_norm': inf, 'learning_rate': 2e-05, 'epoch': 0.13}\r 12%|#2   | 12/100 "
    "[00:10<01:10, 1.2s/it]",
    "iter 10: loss 3.9000, time 134.56ms, mfu 31.20%",
    "step 250: train loss 3.1000, val loss 3.2000",
    "step:2210/2500 train_time:512340ms step_avg:231.83ms",
    "s:120 trl:3.4127 lr:0.000180 norm:0.31",
    "node-07: [rank4]:[E214 04:05:06.323456789 ProcessGroupNCCL.cpp:605] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=901, OpType=_ALLGATHER_BASE, NumelIn=4096, NumelOut=32768, "
    "Timeout(ms)=600000) ran for 600044 milliseconds before timing out.",
    "[rank4]:[E214 04:05:06.4 ProcessGroupNCCL.cpp:2240] [PG ID 5 PG GUID 41(tp) Rank 0]  failure "
    "detected by "
    "watchdog at work sequence id: 901 PG status: last enqueued work: 903, last completed work: 900",
    "[rank3]: Traceback (most recent call last):",
    '[rank3]:   File "/job/train.py", line 11, in <module>',
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total "
    "capacity "
    "of 79.00 GiB of which 1.50 GiB is free.",
    "RuntimeError: [pair.cc:537] Read error [127.0.0.1]:16025: Connection reset by peer.",
    "E0203 04:05:06.498000 51200 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: "
    "-9) "
    "local_rank: 1 (pid: 51208) of binary: /opt/venv/bin/python3",
    "  time      : 2026-02-03_04:05:06",
    "  host      : node-07",
    "  rank      : 9 (local_rank: 1)",
    "  exitcode  : -9 (pid: 51208)  (SIGKILL)",
    "Root Cause (first observed failure):",
    "W0203 04:05:06.0 41 api.py:890] Sending process 4103 closing signal SIGTERM",
    "[default] Worker group FAILED. 2/3 attempts left; will restart worker group",
    "slurmstepd: error: *** STEP 4711.0 ON node-07 CANCELLED AT 2026-02-03T04:05:06 DUE TO TIME LIMIT ***",
    "srun: error: node-07: tasks 0-3,5: Exited with exit code 1",
    "[Tue Feb  3 04:05:06 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has "
    "fallen",
    "[99.1] Out of memory: Killed process 4100 (python) total-vm:1kB, anon-rss:1kB",
    "gpu-a:41:77 [3] misc/socket.cc:46 NCCL WARN Net : Call to recv failed : Connection timed out",
)

OWNED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "rank_00003.jsonl",
        (
            *(json.dumps({"t": 1.0 + it, "step": it, "rank": 3, "loss": 2.0}) for it in range(5)),
            json.dumps({"t": 9.0, "event": "phase_start", "phase": "data", "rank": 3}),
        ),
    ),
    (
        "training.global_rank_0.20260203-040506-ABCDEF.jsonl",
        tuple(
            json.dumps(
                {
                    "rank": 0,
                    "global_rank": 0,
                    "source": "training",
                    "host_name": "node-07",
                    "step": 1,
                    "time": 1_770_000_000.0 + it,
                    "time_us": (1_770_000_000 + it) * 1_000_000,
                    "log_type": "event",
                    "log_type_name": name,
                    "value": 12.5,
                    "caller": "trainer.py:1:train",
                    "seq_id": it,
                    "message": "x",
                }
            )
            for it, name in enumerate(("step_start", "optim_start", "optim_error", "optim_end", "step_end"))
        ),
    ),
    ("metrics.csv", ("epoch,step,train_loss,val_loss", "0,9,2.5,", "0,19,nan,", "0,19,,2.4", "1,29,2.1,")),
    (
        "progress.txt",
        (
            "2026-02-03 04:05:06\tJob ID: 1984\t# GPUs: 8\tStarting job",
            "2026-02-03 04:35:06\tJob ID: 1984\t# GPUs: 8\tSaved checkpoint\tIteration: 100\tJob throughput: "
            "364.0 TFLOP/s/GPU",
        ),
    ),
    ("Train_Samples_train_loss.csv", ("step,train_loss", "64,2.5", "128,2.4")),
    (
        "trainer_state.json",
        tuple(
            json.dumps(
                {
                    "global_step": 20,
                    "max_steps": 100,
                    "log_history": [
                        {"epoch": 0.1, "loss": 2.5, "grad_norm": 1.0, "learning_rate": 1e-5, "step": 10},
                        {"epoch": 0.2, "eval_loss": 2.4, "step": 20},
                    ],
                },
                indent=1,
            ).splitlines()
        ),
    ),
    (
        "rank_3.txt",
        (
            "Process 4100: python train.py",
            "Python v3.11.7 (/usr/bin/python3.11)",
            'Thread 4100 (idle): "MainThread"',
            "    all_reduce (torch/distributed/distributed_c10d.py:3252)",
        ),
    ),
)
"""Files of one format: a name, and lines."""

_ODD = (
    "\x00", "\x1b[31m", "\r", "\t", " ", "|", ":", "=", "-", ",", "{", "}", "[", "]", "(", ")", "'", '"', "%",
    "\ud7ff", "🏖", "é", "nan", "inf", "-", "1e999", "9" * 400, "-1", "0", "٣", "²", "1_0", "1,234",
    "N/A", "None",
)  # fmt: skip


def _cut(line: str, random: random.Random) -> str:
    return line[: random.randrange(len(line) + 1)]


def _begun_late(line: str, random: random.Random) -> str:
    return line[random.randrange(len(line) + 1) :]


def _without(line: str, random: random.Random) -> str:
    at = random.randrange(len(line) + 1)
    return line[:at] + line[at + random.randrange(1, 20) :]


def _with_odd(line: str, random: random.Random) -> str:
    at = random.randrange(len(line) + 1)
    return line[:at] + random.choice(_ODD) * random.choice((1, 1, 1, 2, 50)) + line[at:]


def _other_digits(line: str, random: random.Random) -> str:
    def other(it: str) -> str:
        return random.choice("0123456789.-e") if it.isdigit() and random.random() < 0.3 else it

    return "".join(map(other, line))


def _huge_number(line: str, random: random.Random) -> str:
    digits = [at for at, it in enumerate(line) if it.isdigit()]
    if not digits:
        return line
    at = random.choice(digits)
    return line[:at] + "9" * random.choice((3, 19, 25, 310, 5000)) + line[at:]


def _glued(line: str, random: random.Random) -> str:
    return line + random.choice(("", " ", "\r")) + random.choice(LINES)


def _woven(line: str, random: random.Random) -> str:
    at = random.randrange(len(line) + 1)
    return line[:at] + random.choice(LINES) + line[at:]


def _repeated(line: str, random: random.Random) -> str:
    return line * random.choice((2, 3, 40))


def _other_case(line: str, random: random.Random) -> str:
    return line.swapcase() if random.random() < 0.5 else line.replace(" ", "  ")


_MUTATIONS: tuple[Callable[[str, random.Random], str], ...] = (
    _cut, _begun_late, _without, _with_odd, _other_digits, _huge_number, _glued, _woven, _repeated,
    _other_case,
)  # fmt: skip


def mutated(lines: tuple[str, ...], number: int, seed: int) -> Iterator[bytes]:
    """`number` lines, each mutated one to three times, a few of them not at all; bytes flip in some."""
    chance = random.Random(seed)
    for _ in range(number):
        line = chance.choice(lines)
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            line = chance.choice(_MUTATIONS)(line, chance)
        data = bytearray(line.encode("utf-8", "replace"))
        if data and chance.random() < 0.1:
            data[chance.randrange(len(data))] = chance.randrange(256)
        yield bytes(data).replace(b"\n", b" ")
