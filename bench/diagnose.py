"""How long does `train-ledger diagnose` take on large run directories, and how much does it read?

    python bench/diagnose.py                      1024 ranks × 1,000 steps; 8 × 50,000 and 8 × 200,000

Each is asked for its end and for the middle of it. It is written first, healthy, with 24 fields a line, and
lies in the page cache; the command is a process of its own, imports included. Bytes are those that it read by
the kernel's count (rchar of /proc/PID/io), less those of the same command on a run of eight ranks and ten
steps.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_RUNS = ((8, 10), (1024, 1000), (8, 50_000), (8, 200_000))
_START_T = 1.8e9
_PROGRAM = """
import sys
from train_ledger.cli import app
try:
    app(sys.argv[1:], standalone_mode=False)
except SystemExit:
    pass
print([line for line in open("/proc/self/io") if line.startswith("rchar")][0], file=sys.stderr)
"""


def main() -> None:
    """Print a row for each run."""
    print("ranks   steps  at step     MB on disk   seconds  CPU s   MB read")
    floor = 0
    for ranks, steps in _RUNS:
        with tempfile.TemporaryDirectory() as folder:
            size = _write(Path(folder), ranks, steps)
            for at_step in (steps, steps // 2):
                wall_s, cpu_s, read = _measured(Path(folder), at_step)
                floor = floor or read
                more = (read - floor) / 1e6
                run = f"{ranks:5} {steps:8,} {at_step:8,} {size / 1e6:14,.1f}"
                print(f"{run} {wall_s:9.2f} {cpu_s:6.2f} {more:9.1f}")


def _measured(run: Path, at_step: int) -> tuple[float, float, int]:
    command = [
        sys.executable,
        "-c",
        _PROGRAM,
        "diagnose",
        str(run),
        "--at",
        str(_START_T + at_step + 15),
        "--json",
    ]
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    wall_s, after = time.perf_counter() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    if json.loads(ended.stdout)["cause"] != "none":
        raise SystemExit(f"a healthy run is told to be {json.loads(ended.stdout)['cause']}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, cpu_s, int(ended.stderr.split("rchar:")[1].split()[0])


def _write(run: Path, ranks: int, steps: int) -> int:
    (run / "signals").mkdir()
    told = {"run": "bench", "world_size": ranks, "parallelism": {"dp": ranks}, "started": _START_T}
    (run / "run.json").write_text(json.dumps(told))
    size = 0
    for rank in range(ranks):
        start = {"t": _START_T, "rank": rank, "attempt": 0, "event": "run_start", "world_size": ranks}
        text = json.dumps({**start, "host": f"node{rank // 8:03d}", "pid": 1000 + rank}) + "\n"
        text += "".join(_line(rank, step) for step in range(1, steps + 1))
        size += (run / "signals" / f"rank_{rank:05d}.jsonl").write_text(text)
    return size


def _line(rank: int, step: int) -> str:
    late_s = (rank * 31 + step * 17) % 100 / 1e4
    return (
        f'{{"t": {_START_T + 10 + step + late_s:.6f}, "step": {step}, "rank": {rank}, "attempt": 0, '
        f'"loss": {2 + 8 / (1 + 0.05 * step):.4f}, "grad_norm": 0.5, "lr": 0.0003, "step_time_s": 1.000000, '
        f'"tps": 4096.0, "mfu": 40.1, "data_wait_s": 0.002, "compute_s": {0.8 + late_s:.6f}, '
        f'"comm_wait_s": {0.2 - late_s:.6f}, "gc_s": 0.0, "log_s": 0.0002, "stdout_bytes": {step * 120}, '
        f'"mem_allocated_peak": 42000000000, "mem_reserved_peak": 48000000000, "mem_inactive_split": 100000, '
        f'"num_alloc_retries": 0, "num_device_alloc": 120, "rss_bytes": 9000000000, "cpu_percent": 101.0, '
        f'"consumed_samples": {step * 8}}}\n'
    )


if __name__ == "__main__":
    main()
