"""What does an exporter cost that has nothing to read, and what does it take to start on large files?

    python bench/follow_idle.py [--files 1024] [--seconds 30] [--start-mb 500] [--json]

Idle: an exporter follows one signal file a rank, of hosts that all have eight, polls once a second as
`train-ledger export` does and serves an endpoint; nothing is written for longer than its quiet time, then its
CPU seconds are taken. Start: eight files of `--start-mb` MB each (0: left out), whose middle is made by
repetition; how long it takes until there is something to serve – the first time, and with what the first
exporter kept. The files lie in the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from train_ledger.config import Config
from train_ledger.dash.exporter import Exporter
from train_ledger.run_dir import RunDir

RANKS_PER_HOST = 8
QUIET_S = 10
FIELDS = (
    *("loss", "grad_norm", "lr", "step_time_s", "tps", "tflops", "mfu", "data_wait_s", "fwd_s", "bwd_s"),
    *("opt_s", "compute_s", "comm_wait_s", "gc_s", "mem_allocated_peak", "mem_reserved_peak"),
    *("mem_active_peak", "rss_bytes", "cpu_percent", "queue_depth"),
)


def line_of(rank: int, step: int, t: float) -> bytes:
    values = dict.fromkeys(FIELDS, 1.2345678 + step)
    return json.dumps({"t": t, "step": step, "rank": rank, "attempt": 0, **values}).encode() + b"\n"


def start_of(rank: int, ranks: int, t: float) -> bytes:
    said = {
        "event": "run_start",
        "world_size": ranks,
        "host": f"node{rank // RANKS_PER_HOST:03d}",
        "gpu": rank % 8,
    }
    return json.dumps({"t": t, "step": 0, "rank": rank, "attempt": 0, **said}).encode() + b"\n"


def made(folder: Path, files: int, lines: int) -> RunDir:
    run, began_t = RunDir(folder / "run"), time.time() - lines
    run.signals.mkdir(parents=True)
    for rank in range(files):
        content = [line_of(rank, step, began_t + step) for step in range(1, lines + 1)]
        run.signals_of(rank).write_bytes(start_of(rank, files, began_t) + b"".join(content))
    return run


def enlarged(run: RunDir, size_bytes: int) -> None:
    """Append lines to every file until it has this size: the same ones again and again, and newer ones."""
    t = time.time() - 3600
    for rank, path in run.signal_files():
        older = b"".join(line_of(rank, 1_000 + n, t + n) for n in range(2_000))
        newer = b"".join(line_of(rank, 4_000 + n, t + 2_000 + n / 100) for n in range(100_000))
        with path.open("ab") as file:
            while file.tell() + len(newer) < size_bytes:
                file.write(older)
            file.write(newer)


def rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def idle(folder: Path, files: int, seconds: float) -> dict[str, Any]:
    exporter = Exporter(made(folder, files, 5), Config())
    with exporter.serve(port=0):
        polled(exporter, QUIET_S)
        cpu_s, began_s = time.process_time(), time.monotonic()
        polled(exporter, seconds)
        wall_s = time.monotonic() - began_s
        cpu_s = time.process_time() - cpu_s
    exporter.close()
    return {"files": files, "percent_of_a_core": 100 * cpu_s / wall_s, "rss_mb": rss_mb(), "seconds": wall_s}


def polled(exporter: Exporter, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        time.sleep(1.0 if exporter.poll() else 0.0)


def start(run: RunDir, memory: Path) -> dict[str, Any]:
    """How long a new process takes from its first line of code of ours to metrics."""
    code = (
        "import sys, time; began = time.monotonic()\n"
        "from pathlib import Path\n"
        "from train_ledger.config import Config\n"
        "from train_ledger.dash.exporter import Exporter\n"
        "from train_ledger.run_dir import RunDir\n"
        "loaded = time.monotonic()\n"
        "exporter = Exporter(RunDir(Path(sys.argv[1])), Config(), memory=Path(sys.argv[2]))\n"
        "while not exporter.poll(): pass\n"
        "ready = time.monotonic()\n"
        "exporter.keep(); kept = time.monotonic()\n"
        "peak_kb = Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]\n"
        "print(loaded - began, ready - loaded, kept - ready, int(peak_kb) / 1e3)\n"
    )
    command = [sys.executable, "-c", code, str(run.path), str(memory)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    names = ("import_s", "ready_s", "keep_s", "rss_peak_mb")
    return dict(zip(names, map(float, answer.stdout.split()), strict=True))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--files", type=int, default=1024)
    options.add_argument("--seconds", type=float, default=30.0)
    options.add_argument("--start-mb", type=int, default=500)
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    result: dict[str, Any] = {"python": platform.python_version(), "cpus": os.cpu_count()}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        if asked.seconds:
            result["idle"] = idle(Path(folder) / "idle", asked.files, asked.seconds)
        if asked.start_mb:
            run = made(Path(folder) / "start", 8, 5)
            enlarged(run, asked.start_mb * 1_000_000)
            memory = Path(folder) / "memory"
            result["start"] = {"first": start(run, memory), "again": start(run, memory)}
    if asked.json:
        print(json.dumps(result))
        return
    for part, figures in result.items():
        print(f"{part}: {figures}")


if __name__ == "__main__":
    main()
