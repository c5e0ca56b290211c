"""What does log() cost the training thread, and what when the file does not take the lines?

    python bench/log_latency.py [--calls 10000] [--rounds 3] [--json]

A loop works for half a millisecond (it spins, which is the worst case: the interpreter lock is wanted all
the time) and then logs a line of ten numbers; only the call is timed. The same loop without a logger shows
what the machine itself does to a call, and `logging.FileHandler` what is common practice. `Monitor.step()`
is timed after four phases, with all that a monitor measures by itself, alone and in a process group of gloo
where torch is there. The sinks that fail: one whose write blocks for a minute, a read-only directory, a
full tmpfs (both need root to mount one, else they are left out), and a FIFO that nobody reads.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import train_ledger
from train_ledger import SignalLogger

WORK_S = 0.0005
BLOCKED_S = 60.0
SHORT_QUEUE_LINES = 1000

Log = Callable[[int], None]


class Distribution(NamedTuple):
    """Latencies in microseconds, and the lines that were dropped meanwhile.

    `loop` is by how much the longest turn of the loop exceeded its work: a call that takes 0.1 µs hardly
    ever meets what the machine does to a loop, so only this compares the loops with and without a logger.
    """

    name: str
    p50: float
    p99: float
    p999: float
    longest: float
    loop: float
    dropped: int = 0


def measure(
    name: str,
    log: Log,
    calls: int,
    dropped: Callable[[], int] = lambda: 0,
    before: Callable[[], None] = lambda: None,
) -> Distribution:
    """Time `log` between pieces of work; the first tenth of the calls warms up. `before` is not timed."""
    took_ns = []
    loop_ns = 0
    gc.collect()
    for n in range(-calls // 10, calls):
        turned = time.perf_counter_ns()
        until = time.perf_counter() + WORK_S
        while time.perf_counter() < until:
            pass
        before()
        began = time.perf_counter_ns()
        log(n)
        ended = time.perf_counter_ns()
        if n >= 0:
            took_ns.append(ended - began)
            loop_ns = max(loop_ns, ended - turned)
    took_ns.sort()
    p50, p99, p999 = (took_ns[min(calls - 1, int(calls * q))] / 1e3 for q in (0.5, 0.99, 0.999))
    return Distribution(name, p50, p99, p999, took_ns[-1] / 1e3, loop_ns / 1e3 - WORK_S * 1e6, dropped())


def without(calls: int) -> Distribution:
    return measure("no logger", lambda n: None, calls)


def healthy(calls: int) -> Distribution:
    with tempfile.TemporaryDirectory() as folder, logger_in(Path(folder)) as logger:
        return measure("healthy file", line_by(logger), calls, lambda: logger.dropped_lines)


def blocked(calls: int) -> Distribution:
    with tempfile.TemporaryDirectory() as folder, logger_in(Path(folder), SHORT_QUEUE_LINES) as logger:
        logger._sink.write = lambda data: time.sleep(BLOCKED_S) or data  # type: ignore[method-assign,func-returns-value]
        return measure("write blocks 60 s", line_by(logger), calls, lambda: logger.dropped_lines)


def fifo(calls: int) -> Distribution:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "signals", "rank_00000.jsonl")
        path.parent.mkdir()
        os.mkfifo(path)
        with logger_in(Path(folder), SHORT_QUEUE_LINES) as logger:
            return measure("FIFO nobody reads", line_by(logger), calls, lambda: logger.dropped_lines)


def read_only(calls: int) -> Distribution | None:
    with small_tmpfs() as folder:
        if folder is None or subprocess.run(["mount", "-o", "remount,ro", folder], check=False).returncode:
            return None
        with logger_in(folder, SHORT_QUEUE_LINES) as logger:
            return measure("read-only directory", line_by(logger), calls, lambda: logger.dropped_lines)


def full(calls: int) -> Distribution | None:
    with small_tmpfs() as folder:
        if folder is None:
            return None
        with logger_in(folder, SHORT_QUEUE_LINES) as logger:
            return measure("full tmpfs", line_by(logger), calls, lambda: logger.dropped_lines)


def step(calls: int) -> Distribution:
    """A whole step's line: phases, garbage collection, output, host."""
    with tempfile.TemporaryDirectory() as folder, train_ledger.start(folder) as monitor:
        return measure(
            "Monitor.step()", lambda n: monitor.step(n, **FIELDS), calls, before=phases_of(monitor)
        )


def step_in_a_group(calls: int) -> Distribution | None:
    """The same where a step's own work is told from its waiting; each step has two collectives."""
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        return None
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    tensor = torch.ones(1)

    def train() -> None:
        phases()
        dist.all_reduce(tensor)
        dist.all_reduce(tensor)

    with tempfile.TemporaryDirectory() as folder, train_ledger.start(folder) as monitor:
        phases = phases_of(monitor)
        result = measure("Monitor.step(), gloo", lambda n: monitor.step(n, **FIELDS), calls, before=train)
    dist.destroy_process_group()
    return result


def phases_of(monitor: train_ledger.Monitor) -> Callable[[], None]:
    def enter_and_leave() -> None:
        for name in ("data", "forward", "backward", "optimizer"):
            with monitor.phase(name):
                pass

    return enter_and_leave


def file_handler(calls: int) -> Distribution:
    """The same line by the standard library's logging, written on the training thread."""
    with tempfile.TemporaryDirectory() as folder:
        handler = logging.FileHandler(Path(folder, "log.jsonl"))
        log = logging.getLogger("bench.log_latency")
        log.propagate = False
        log.setLevel(logging.INFO)
        log.addHandler(handler)

        def line(n: int) -> None:
            log.info(json.dumps({"t": time.time(), "step": n, "rank": 0, "attempt": 0, **FIELDS}))

        try:
            return measure("logging.FileHandler", line, calls)
        finally:
            log.removeHandler(handler)
            handler.close()


FIELDS = {
    "loss": 2.104,
    "grad_norm": 0.812,
    "lr": 2.987e-4,
    "step_time_s": 4.8123,
    "data_wait_s": 0.0012,
    "fwd_s": 1.5011,
    "bwd_s": 3.0022,
    "opt_s": 0.2001,
    "rss_bytes": 8_123_456_512,
    "cpu_percent": 99.5,
}


def line_by(logger: SignalLogger) -> Log:
    return lambda n: logger.log(step=n, **FIELDS)


@contextmanager
def logger_in(folder: Path, queue_lines: int = 20_000) -> Iterator[SignalLogger]:
    logger = SignalLogger(folder, rank=0, attempt=0, queue_lines=queue_lines)
    logger._complaints._known.add("file")  # that it cannot be written is known here
    try:
        yield logger
    finally:
        logger.close(timeout_s=0.5)


@contextmanager
def small_tmpfs() -> Iterator[Path | None]:
    """64 KiB of memory as a file system; None where this user may not mount one."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
        if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
            yield None
            return
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=False)


FIGURES = ("p50", "p99", "p999", "longest", "loop")
SCENES: tuple[Callable[[int], Distribution | None], ...] = (
    without,
    healthy,
    blocked,
    read_only,
    full,
    fifo,
    file_handler,
    step,
    step_in_a_group,
)


def typical(rounds: list[list[Distribution]]) -> list[Distribution]:
    """Figure by figure the median of the rounds: what else runs on the machine comes and goes."""
    return [
        of_scene[0]._replace(
            **{name: statistics.median(getattr(one, name) for one in of_scene) for name in FIGURES}
        )
        for of_scene in zip(*rounds, strict=True)
    ]


def as_text(results: list[Distribution]) -> str:
    rows = [f"{'':<22}{'p50':>9}{'p99':>9}{'p99.9':>9}{'max':>10}{'loop max':>11}  µs   dropped lines"]
    for result in results:
        figures = (
            f"{result.p50:9.2f}{result.p99:9.2f}{result.p999:9.1f}{result.longest:10.1f}{result.loop:11.1f}"
        )
        rows.append(f"{result.name:<22}{figures}      {result.dropped or ''}".rstrip())
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=10_000, help="timed calls a scene (default: 10000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; their median is shown (default: 3)")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    arguments = parser.parse_args()
    rounds = [
        [result for scene in SCENES if (result := scene(arguments.calls)) is not None]
        for _ in range(arguments.rounds)
    ]
    results = typical(rounds)
    if arguments.json:
        figures = {result.name: dict(zip(result._fields[1:], result[1:], strict=True)) for result in results}
        print(json.dumps({"schema": 1, "calls": arguments.calls, "unit": "us", "figures": figures}, indent=1))
        return
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{machine}, {arguments.calls} calls a scene, median of {arguments.rounds} rounds")
    print(as_text(results))
    if len(results) < len(SCENES):
        print("left out: what needs root to mount a tmpfs, or torch", file=sys.stderr)


if __name__ == "__main__":
    main()
