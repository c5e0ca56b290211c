"""How long from dumps to the culprit, beside torchfrtrace?

    python bench/hang_dumps.py [--ranks 64] [--entries 2000]

Writes Flight Recorder dumps as NCCL jobs leave them – one rank never came to the last all_reduce – and lets
both programs read them, each as a person would start it. torchfrtrace comes with torch.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FRAMES = [{"name": f"layer_{depth}", "filename": "/job/model.py", "line": 10 + depth} for depth in range(12)]


def entry(seq: int, *, done: bool) -> dict[str, Any]:
    return {
        "frames": FRAMES,
        "record_id": seq,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": "nccl:all_reduce" if seq % 2 else "nccl:_all_gather_base",
        "time_created_ns": 1_800_000_000_000_000_000 + seq * 1_000_000,
        "input_sizes": [[1024]],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [[1024]],
        "output_dtypes": ["BFloat16"],
        "state": "completed" if done else "scheduled",
        "time_discovered_started_ns": 1 if done else None,
        "time_discovered_completed_ns": 2 if done else None,
        "retired": done,
        "timeout_ms": 600_000,
        "is_p2p": False,
        "thread_name": "python3",
        "thread_id": "1",
    }


def write_dumps(folder: Path, ranks: int, entries: int) -> int:
    """Rank 3 is one operation behind; the bytes written."""
    members = str(list(range(ranks)))
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": members}}
    total = 0
    for rank in range(ranks):
        made = [entry(seq, done=True) for seq in range(1, entries)]
        made += [] if rank == 3 else [entry(entries, done=False)]
        dump = {
            "version": "2.10",
            "pg_config": config,
            "comm_lib_version": "2.27",
            "pg_status": {},
            "entries": made,
        }
        data = pickle.dumps(dump, protocol=2)
        (folder / f"rank_{rank}").write_bytes(data)
        total += len(data)
    return total


def timed(command: list[str]) -> tuple[float, str]:
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    return time.perf_counter() - started, done.stdout + done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--entries", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        total = write_dumps(folder, options.ranks, options.entries)
        ours_s, said = timed([sys.executable, "-m", "train_ledger", "hang", str(folder)])
        theirs_s, report = timed(
            [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder), "-p", "rank_"]
        )
    print(f"{options.ranks} ranks × {options.entries} entries, {total / 1e6:.0f} MB")
    print(f"train-ledger hang  {ours_s:6.2f} s  {said.splitlines()[0]}")
    print(f"torchfrtrace       {theirs_s:6.2f} s  {len(report.splitlines())} lines")
    print(f"ratio              {theirs_s / ours_s:6.1f}")


if __name__ == "__main__":
    main()
