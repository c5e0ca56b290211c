"""How long does it take to read the newest steps of a large or a long run, and how much is read?

    python bench/slow_table.py

Two run directories are made: 1024 ranks × 1,000 steps, and 8 ranks × 200,000 steps. Of each the newest steps
are read, those known at an earlier time, and who drags in them is judged.
"""

from __future__ import annotations

import json
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from train_ledger.run_dir import RunDir
from train_ledger.slow.change import changes_of, since_when
from train_ledger.slow.peers import who
from train_ledger.slow.table import StepTable, read_table

START_T = 1_800_000_000.0
HOSTS_OF = 8


def made(path: Path, ranks: int, steps: int) -> RunDir:
    """The run directory of a healthy job; all ranks tell the same but who they are."""
    rng = random.Random(6)
    run = RunDir(path)
    run.signals.mkdir(parents=True)
    run.run_json.write_text(json.dumps({"world_size": ranks, "parallelism": {"dp": ranks}}))
    lines = "".join(_line(step, rng) for step in range(1, steps + 1))
    for rank in range(ranks):
        start = {"t": START_T, "rank": rank, "event": "run_start", "host": f"node{rank // HOSTS_OF}"}
        own = lines.replace('"rank": 0,', f'"rank": {rank},')
        run.signals_of(rank).write_text(json.dumps(start) + "\n" + own)
    return run


def _line(step: int, rng: random.Random) -> str:
    own_s = 0.8 + 0.01 * rng.random()
    fields = {
        "t": START_T + step, "step": step, "rank": 0, "attempt": 0, "loss": 2 + rng.random(), "lr": 3e-4,
        "grad_norm": 0.5, "step_time_s": 1.0, "tps": 4096.0, "mfu": 40.0, "data_wait_s": 0.002,
        "compute_s": own_s, "comm_wait_s": 1 - own_s, "gc_s": 0.0, "log_s": 0.0001, "cpu_percent": 110.0,
        "stdout_bytes": 100 * step, "mem_allocated_peak": 42_000_000_000, "rss_bytes": 9_000_000_000,
    }  # fmt: skip
    return json.dumps(fields) + "\n"


def timed(what: str, do: Callable[[], object]) -> object:
    begin, cpu = time.perf_counter(), time.process_time()
    found = do()
    wall_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
    read = f", {found.read_bytes / 1e6:.1f} MB read, {found.shape}" if isinstance(found, StepTable) else ""
    print(f"  {what:42}{wall_s:7.2f} s, {cpu_s:.2f} s of a core{read}")
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for ranks, steps in ((1024, 1_000), (8, 200_000)):
            run = made(Path(folder) / str(ranks), ranks, steps)
            size = sum(path.stat().st_size for _, path in run.signal_files())
            print(f"{ranks} ranks × {steps:,} steps, {size / 1e6:,.0f} MB")
            table = timed("the newest steps", lambda run=run: read_table(run))
            at = START_T + 0.7 * steps
            timed("those known when 70 % were done", lambda run=run, at=at: read_table(run, at=at))
            assert isinstance(table, StepTable)
            timed("who drags", lambda table=table: who(table))
            timed("what changed", lambda table=table: changes_of(table))
            timed("since when, over the whole run", lambda run=run, table=table: since_when(run, table))
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
