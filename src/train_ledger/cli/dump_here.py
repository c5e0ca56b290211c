"""Whose dumps can be had from here?

Those of the ranks that the run directory knows; and of processes of this host that say by their environment
that they belong to it, or to the job that was named.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from train_ledger.answer import Unreadable
from train_ledger.cli.stacks import job_here
from train_ledger.config import Config
from train_ledger.ledger import RankState, RunState
from train_ledger.ops import observe
from train_ledger.ops.asking.collect import Asking, Dumps, collect_dumps
from train_ledger.ops.hosts.dump_check import unusable
from train_ledger.ops.hosts.gathered import Gathered
from train_ledger.run_dir import RunDir
from train_ledger.sources.processes.rank_processes import JobHere, jobs_here

__all__ = ["gather_here"]


def gather_here(
    run_dir: RunDir, config: Config, asking: Asking, *, job: str | None, here_alone: bool
) -> Gathered:
    """Ask, wait, read what came; raises BadInputError where it is not clear which job is meant."""
    started = time.monotonic()
    state, not_read = observe(run_dir, config)
    ranks, nobody = _ranks(run_dir, state, job, here_alone)
    asked = [it for it in ranks.values() if it.gone_t is None and not it.ended]
    dumps = collect_dumps(run_dir, asked, asking) if asked else Dumps({}, {})
    files = {rank: run_dir.comm_trace_of(rank, ranks[rank].attempt) for rank in dumps.by}
    damaged = unusable(files, config.limits)
    missing = {rank: _why_not_asked(it) for rank, it in ranks.items() if it not in asked}
    missing |= dict(dumps.failed) | {rank: f"{files[rank]}: {why}" for rank, why in damaged.items()}
    if not here_alone:
        missing |= _unheard(state, ranks)
    there: dict[int, Path] = {rank: path for rank, path in files.items() if rank not in damaged}
    unread = tuple(Unreadable(str(run_dir.path), said) for said in not_read)
    if nobody:
        unread = (*unread, Unreadable(socket.gethostname(), nobody))
    return Gathered(
        files=there,
        missing=dict(sorted(missing.items())),
        by={rank: way for rank, way in dumps.by.items() if rank in there},
        folder=run_dir.comm_traces(state.attempt),
        attempt=state.attempt,
        took_s=time.monotonic() - started,
        unread=unread,
    )


def _ranks(
    run_dir: RunDir, state: RunState, job: str | None, here_alone: bool
) -> tuple[Mapping[int, RankState], str]:
    """The ranks to ask, and why there are none."""
    here = socket.gethostname()
    known = {rank: it for rank, it in state.ranks.items() if not here_alone or it.host in (None, here)}
    if known and job is None:
        return known, ""
    found = [job_here(job)] if job else jobs_here()
    ours = [it for it in found if it and (job or _dumps_into(it, run_dir))]
    if len(ours) != 1:
        others = "; ".join(str(it.job) for it in found[:4] if it)
        told = f"; there are processes of {others}: name that job with --job" if others else ""
        return known, f"no rank of the run is known on this host: none has written a line{told}"
    processes = {
        rank: RankState(rank, attempt=state.attempt, pid=it.pid, host=here)
        for rank, it in ours[0].ranks.items()
    }
    return {**processes, **known}, ""


def _dumps_into(job: JobHere, run_dir: RunDir) -> bool:
    """Whether the dumps of its ranks go into this run directory: another job's must not."""
    traces = str(run_dir.path.resolve())
    named = (value for it in job.ranks.values() for name, value in it.variables.items() if "DUMP" in name)
    return any(os.path.realpath(value).startswith(f"{traces}/") for value in named if value.startswith("/"))


def _why_not_asked(rank: RankState) -> str:
    return (
        "not asked: its process is gone"
        if rank.gone_t is not None
        else "not asked: it said that its run ended"
    )


def _unheard(state: RunState, ranks: Mapping[int, RankState]) -> dict[int, str]:
    silent = "not asked: it has not written a line (signals/)"
    return {rank: silent for rank in range(state.world_size or 0) if rank not in ranks}
