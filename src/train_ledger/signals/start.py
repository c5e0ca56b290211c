"""How does a rank begin to tell of itself?"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.signals import flight
from train_ledger.signals.attempt import next_attempt
from train_ledger.signals.bounded import within
from train_ledger.signals.gpu import gpu_of
from train_ledger.signals.identity import Identity, identify
from train_ledger.signals.memory import MemoryCounters
from train_ledger.signals.monitor import Monitor
from train_ledger.signals.throughput import Throughput
from train_ledger.signals.worker_server import serve

__all__ = ["start"]

_PREPARE_S = 5.0
_current: Monitor | None = None


def start(
    run_dir: str | os.PathLike[str],
    *,
    world_size: int | None = None,
    rank: int | None = None,
    parallelism: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    worker_server: bool | None = None,
    keep_memory_peaks: bool = False,
    **run_json: Any,
) -> Monitor:
    """Begin to write this rank's signals into `run_dir`; call it before `init_process_group`.

    `rank` and `world_size` are taken from the launcher's environment where they are not given. `parallelism`
    is {"dp", "tp", "pp", "cp", "ep", "order"}, `model` {"params", "layers", "heads", "head_dim", "seq_len"};
    both, and every further keyword (`gpu_price_per_hour`, `restart_command`, …), go into run.json by rank 0.
    `worker_server` (or TRAIN_LEDGER_WORKER_SERVER=1) starts torch's own server, which can dump even while
    Python is locked up. A second call in one process closes the first monitor.

    Never raises for what the machine does: where the run directory cannot be written one line says so on
    stderr, and the training goes on.
    """
    global _current
    if _current is not None:
        _current.close()
    place = RunDir(Path(run_dir).absolute())
    me = identify(rank, world_size)
    attempt = within(_PREPARE_S, lambda: _prepare(place, me), None)
    if attempt is None:
        attempt = next_attempt(Path(os.devnull))
        _say(
            me, f"{place.path} cannot be written; the training goes on, its signals are dropped until it can"
        )
    findings = flight.apply(os.environ, place, attempt)
    gpu = gpu_of(me.local_rank)
    monitor = Monitor(
        place,
        me,
        attempt,
        Throughput(model, parallelism, run_json.get("peak_flops"), gpu.get("pci")),
        MemoryCounters(keep_memory_peaks),
    )
    served = serve(place, me.rank) if _wants_server(worker_server) else {}
    monitor.open(
        world_size=me.world_size, host=me.host, local_rank=me.local_rank, pid=me.pid, **gpu, **served
    )
    for finding in findings + flight.check(os.environ, me.rank):
        if finding.level != "note":
            monitor.warn(finding.about, finding.message)
    if me.rank == 0:
        constants = {"world_size": me.world_size, "parallelism": parallelism, "model": model, **run_json}
        if not within(_PREPARE_S, lambda: _write_run(place, constants), False):
            _say(
                me,
                f"{place.run_json} could not be written; name, layout and price of the run are not known to readers",
            )
    _current = monitor
    return monitor


def _prepare(place: RunDir, me: Identity) -> int:
    """Make the folders and find the attempt; may take as long as the file system likes."""
    attempt = next_attempt(place.signals_of(me.rank))
    for folder in (place.signals, place.requests, place.comm_traces(attempt), place.stacks(attempt)):
        folder.mkdir(parents=True, exist_ok=True)
    return attempt


def _write_run(place: RunDir, constants: Mapping[str, Any]) -> bool:
    """Create run.json or bring it up to date: what others wrote there stays, what is given now counts."""
    try:
        there = place.read_run()
    except RunDirError:
        return False
    first = {"run": place.path.name, "started": time.time()}
    given = {key: value for key, value in constants.items() if value is not None}
    place.merge_run({**first, **there, **given})
    return True


def _wants_server(asked: bool | None) -> bool:
    return os.environ.get("TRAIN_LEDGER_WORKER_SERVER") == "1" if asked is None else asked


def _say(me: Identity, message: str) -> None:
    print(f"train-ledger: rank {me.rank}: {message}", file=sys.stderr)
