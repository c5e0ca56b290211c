"""How fast is a log read, by what stands in it?

    python bench/read_logs.py [MIB]

Reads made logs of MIB mebibytes and prints the rate in megabytes a second of CPU time, and the largest
resident size: chatter as NCCL prints it, warnings that differ in numbers alone, words in no order, chatter
with a step in every thousandth line, and nothing but steps of Megatron, torchtitan, DeepSpeed and the Hugging
Face Trainer. Ends with 1 where chatter is read slower than 100 MB/s.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable
from itertools import count

from train_ledger.sources import FactReader

PIECE_BYTES = 256 << 10
LEAST_MB_S = 100.0
WORDS = (
    "ring",
    "loading",
    "shard",
    "weights",
    "the",
    "of",
    "epoch",
    "dataset",
    "warning",
    "host",
    "gpu-3",
    "/data",
)


def chatter(number: int) -> str:
    gpu, peer = number % 8, (number + 1) % 8
    bus = f"{number * 4096 % 999_983:x}"
    return (
        f"gpu-{gpu}:{4100 + number % 50}:{5000 + number % 77} [{gpu}] NCCL INFO "
        f"Channel {number % 32:02d}/0 : {gpu}[{bus}] -> {peer}[{gpu}000] via P2P/IPC"
    )


def warning(number: int) -> str:
    return f"/venv/lib/python3.11/site-packages/x.py:{number}: UserWarning: argument {number} is deprecated"


def words(number: int) -> str:
    return " ".join(random.Random(number).choices(WORDS, k=12))


def step(number: int) -> str:
    return (
        f" [2026-02-03 04:05:06] iteration {number:8d}/   90000 | consumed samples: {number * 64:12d} | "
        f"elapsed time "
        f"per iteration (ms): {1000 + number % 77}.0 | learning rate: 1.500000E-04 | lm loss: "
        f"2.{number:06d}E+00 | "
        f"grad norm: 1.{number % 999:03d} | number of skipped iterations:   0 | number of nan iterations: "
        f"  0 |"
    )


def titan(number: int) -> str:
    return (
        f"[rank0]:[titan] 2026-02-03 04:05:06,007 - root - INFO - \x1b[31mstep: {number:2d}  \x1b[32mloss:  "
        f"7.{number % 99_999:05d}  \x1b[33mgrad_norm:  2.{number % 9999:04d}  \x1b[34mmemory: "
        f"40.00GiB(50.00%)  tps: 3,{number % 999:03d}  tflops: 130.20  mfu: 13.16%\x1b[39m"
    )


def deepspeed(number: int) -> str:
    """Two lines a step: the engine's and its timer's."""
    front, ended = "[2026-02-03 04:05:06,142] [INFO]", number // 2
    if number % 2:
        return f"{front} [logging.py:96:log_dist] [Rank 0] step={ended + 1}, skipped=0, lr=[1e-05], mom=[0.9]"
    return (
        f"{front} [timer.py:199:stop] epoch=0/micro_step={ended}/global_step={ended}, "
        f"RunningAvgSamplesPerSec=12.5{number % 9}, CurrSamplesPerSec=12.4, MemAllocated=3.96GB"
    )


def trainer(number: int) -> str:
    clock = f"{number // 60:02d}:{number % 60:02d}"
    return (
        f"{{'loss': 2.{number % 9999:04d}, 'grad_norm': 1.{number % 999:03d}, 'learning_rate': 2e-05, "
        f"'epoch': {number / 1000:.3f}}}\r {number // 1000}%|#2   | {number}/100000 "
        f"[{clock}<01:10:00, 1.2s/it]"
    )


def mixed(number: int) -> str:
    return step(number) if number % 1000 == 0 else chatter(number)


LOGS: dict[str, tuple[Callable[[int], str], float]] = {
    "chatter": (chatter, 1.0),
    "warnings": (warning, 1.0),
    "words": (words, 0.25),
    "mixed": (mixed, 1.0),
    "steps": (step, 0.05),
    "titan": (titan, 0.05),
    "deepspeed": (deepspeed, 0.05),
    "trainer": (trainer, 0.05),
}
"""Lines, and what part of the size is read of them."""


def text_of(line: Callable[[int], str], size: int) -> bytes:
    lines, length = [], 0
    for number in count(1):
        lines.append(line(number))
        length += len(lines[-1]) + 1
        if length >= size:
            break
    return "\n".join(lines).encode() + b"\n"


def rate_mb_s(text: bytes) -> tuple[float, int, int]:
    """MB/s of CPU time, lines, facts."""
    reader, facts = FactReader("train.log", written_t=1_775_000_000.0), 0
    began_s = time.process_time()
    for at in range(0, len(text), PIECE_BYTES):
        facts += len(reader.feed(text[at : at + PIECE_BYTES]))
    facts += len(reader.end())
    return len(text) / 1e6 / (time.process_time() - began_s), reader.lines, facts


def main(mib: int) -> int:
    """Prints a table; the exit status."""
    slow = False
    for name, (line, part) in LOGS.items():
        text = text_of(line, int(mib * part * (1 << 20)))
        rate, lines, facts = rate_mb_s(text)
        slow = slow or (name == "chatter" and rate < LEAST_MB_S)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(
            f"{name:<9} {len(text) >> 20:4} MiB {lines:8} lines {facts:7} facts {rate:7.1f} MB/s "
            f"{rate * 1e6 * lines / len(text):9.0f} lines/s {most:5} MiB"
        )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 32))
