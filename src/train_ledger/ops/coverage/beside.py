"""What lies in a run directory besides the ranks' own lines: kernel logs, logs, a keeper, a layout?"""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from train_ledger.run_dir import RunDir, parsed_json, read_small

__all__ = ["RUN_LOOKS", "kernel_logs", "written_t"]

_MOST_LOGS = 20_000
_LARGEST_PID = 1 << 31


def kernel_logs(run_dir: RunDir) -> Iterator[tuple[str, float | None]]:
    """The hosts of which there is one, and when it was written last."""
    for path in run_dir.hardware.glob("*.kern.log") if run_dir.hardware.is_dir() else ():
        yield path.name.removesuffix(".kern.log"), written_t(path)


def keeper(run_dir: RunDir, at: float | None) -> float | None:
    """Since when a keeper has the run, by its lock: one that was killed left its word behind."""
    try:
        holder: Any = json.loads(read_small(run_dir.keeper_lock, limit_bytes=4096) or b"null")
        host, pid, since_t = str(holder["host"]), int(holder["pid"]), float(holder["since"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None
    if not 0 < pid < _LARGEST_PID or (host == socket.gethostname() and not psutil.pid_exists(pid)):
        return None
    return since_t if at is None or since_t <= at else None


def logs(run_dir: RunDir, at: float | None) -> float | None:
    """When the newest of the run's logs was written."""
    files = (it for it in islice(_files_below(run_dir.log_folders()), _MOST_LOGS) if not _is_empty(it))
    times = (t for t in map(written_t, files) if t is not None)
    return max((t for t in times if at is None or t <= at), default=None)


def _files_below(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        for at, below, names in os.walk(folder):
            below[:] = [name for name in below if not name.startswith(".")]
            yield from (Path(at, name) for name in names if not name.startswith("."))


def written_t(path: Path) -> float | None:
    """When a regular file was written last; None where it is none, or has just been renamed."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime if stat.S_ISREG(status.st_mode) else None


def _is_empty(path: Path) -> bool:
    try:
        return not path.stat().st_size
    except OSError:
        return True


def parallelism(run_dir: RunDir, _: float | None) -> float | None:
    """When the run.json that tells the layout was written."""
    try:
        told = parsed_json(read_small(run_dir.run_json, limit_bytes=16 << 20))
    except (OSError, ValueError):
        return None
    is_told = isinstance(told, dict) and isinstance(told.get("parallelism"), dict)
    return written_t(run_dir.run_json) if is_told else None


RUN_LOOKS: Mapping[str, Callable[[RunDir, float | None], float | None]] = {
    "processes": keeper,
    "logs": logs,
    "parallelism": parallelism,
}
"""By the name of the signal: when it was there last, as known at a moment; None where it is not."""
