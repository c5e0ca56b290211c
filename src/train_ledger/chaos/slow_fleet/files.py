"""What would the ranks of a simulated job have written?"""

from __future__ import annotations

from pathlib import Path

import msgspec

from train_ledger.chaos.fleet import START_T
from train_ledger.chaos.slow_fleet.plan import SlowJob
from train_ledger.chaos.story import identity_at
from train_ledger.run_dir import RunDir, write_atomically

__all__ = ["write_job"]

_encode = msgspec.json.Encoder().encode


def write_job(job: SlowJob, path: Path) -> RunDir:
    """The run directory that the job's ranks would have written."""
    run_dir = RunDir(path)
    run_dir.signals.mkdir(parents=True, exist_ok=True)
    write_atomically(run_dir.run_json, _encode(job.run) + b"\n")
    table = job.table
    for row, place in enumerate(table.places):
        lines = [_start(job, place.rank, place.host or "")]
        named = [(name, told[row].tolist()) for name, told in table.values.items()]
        for column, step in enumerate(table.steps.tolist()):
            if table.marks.evaluation[column]:
                lines += [_event(job, place.rank, column, name) for name in ("eval_start", "eval_end")]
            head = {"t": float(table.t[row, column]), "step": step, "rank": place.rank, "attempt": 0}
            lines.append(_encode(head | {name: told[column] for name, told in named}))
        run_dir.signals_of(place.rank).write_bytes(b"\n".join(lines) + b"\n")
    return run_dir


def _start(job: SlowJob, rank: int, host: str) -> bytes:
    identity = identity_at(host, rank % job.plan.ranks_per_host, 0)
    head = {"t": START_T, "rank": rank, "attempt": 0, "event": "run_start", "world_size": job.plan.ranks}
    return _encode(head | identity)


def _event(job: SlowJob, rank: int, column: int, name: str) -> bytes:
    t = float(job.table.t[0, max(0, column - 1)])
    return _encode({"t": t, "rank": rank, "attempt": 0, "event": name})
