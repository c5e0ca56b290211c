"""What do our calls and our threads cost the demo's training?

    torchrun --standalone --nproc-per-node 4 bench/demo_cost.py

Trains the demo's model without a fault for 1000 steps. The processor time of every call into the monitor
and of what it does at every collective, on the training thread, and of our threads, as the kernel counts
it, stands beside the time of the steps, for each rank.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import train_ledger
from train_ledger.chaos import hang_drill

STEPS = 1000


class Stopwatch:
    """Adds up the processor time of calls, less what it costs to ask for it, which each step tells anew."""

    def __init__(self) -> None:
        self._spent_s = self._empty_s = 0.0
        self._calls = self._empty = 0

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        started = time.thread_time()
        result = function(*arguments, **options)
        self._spent_s += time.thread_time() - started
        self._calls += 1
        return result

    def calibrate(self) -> None:
        started = time.thread_time()
        self._empty_s += time.thread_time() - started
        self._empty += 1

    @property
    def seconds(self) -> float:
        return self._spent_s - self._calls * self._empty_s / self._empty


class Timed:
    """A monitor whose calls from the training thread are added up."""

    def __init__(self, monitor: Any) -> None:
        self._monitor = monitor
        self.watch = Stopwatch()
        clock = monitor._collectives.clock
        clock.begin_wait = partial(self.watch.call, clock.begin_wait)
        clock.end_wait = partial(self.watch.call, clock.end_wait)

    def step(self, n: int, **fields: float) -> None:
        self.watch.calibrate()
        self.watch.call(self._monitor.step, n, **fields)

    def phase(self, name: str) -> TimedPhase:
        return TimedPhase(self.watch, self._monitor.phase(name))

    def close(self) -> None:
        self.threads_s = _our_threads_s()
        self._monitor.close()


class TimedPhase:
    def __init__(self, watch: Stopwatch, phase: Any) -> None:
        self._watch, self._phase = watch, phase

    def __enter__(self) -> None:
        self._watch.call(self._phase.__enter__)

    def __exit__(self, *error: Any) -> None:
        self._watch.call(self._phase.__exit__, *error)


def _our_threads_s() -> float:
    """Processor seconds of our threads so far, by the kernel's scheduler (nanoseconds)."""
    ours = [it.native_id for it in threading.enumerate() if it.name.startswith("train-ledger")]
    return (
        sum(int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0]) for thread in ours) / 1e9
    )


def main() -> None:
    rank = int(os.environ["RANK"])
    start = train_ledger.start
    timed: list[Timed] = []

    def timed_start(*arguments: Any, **options: Any) -> Timed:
        timed.append(Timed(start(*arguments, **options)))
        return timed[0]

    train_ledger.start = timed_start  # type: ignore[assignment]
    run = Path(tempfile.gettempdir()) / f"demo_cost_{os.environ['TORCHELASTIC_RUN_ID']}"
    hang_drill.main(["--run-dir", str(run), "--culprit", "-1", "--steps", str(STEPS)])
    lines = [
        json.loads(line) for line in (run / "signals" / f"rank_{rank:05d}.jsonl").read_text().splitlines()
    ]
    steps_s = sum(line.get("step_time_s", 0.0) for line in lines)
    calls_s, threads_s = timed[0].watch.seconds, timed[0].threads_s
    share = 100 * (calls_s + threads_s) / steps_s
    calls_us, threads_us = 1e6 * calls_s / STEPS, 1e6 * threads_s / STEPS
    said = f"calls {calls_us:.0f} µs and threads {threads_us:.0f} µs a step: {share:.2f} %"
    print(f"rank {rank}: {STEPS} steps of {1000 * steps_s / STEPS:.1f} ms; {said}", flush=True)


if __name__ == "__main__":
    main()
