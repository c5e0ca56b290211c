"""Traces as Kineto writes them, made small for one question each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def kernel(start_us: float, end_us: float, name: str = "gemm", correlation: int = 0, **args: Any) -> Event:
    """A kernel on stream 7 of GPU 0."""
    told = {"stream": 7, "device": 0, "correlation": correlation, **args}
    return _event("kernel", name, start_us, end_us, pid=0, tid=7, args=told)


def copy(start_us: float, end_us: float, name: str = "Memcpy HtoD", correlation: int = 0) -> Event:
    args = {"stream": 7, "correlation": correlation}
    return _event("gpu_memcpy", name, start_us, end_us, pid=0, tid=7, args=args)


def launch(
    start_us: float, end_us: float, correlation: int, name: str = "cudaLaunchKernel", tid: int = 1
) -> Event:
    args = {"cbid": 211, "correlation": correlation}
    return _event("cuda_runtime", name, start_us, end_us, pid=100, tid=tid, args=args)


def step(number: int, start_us: float, end_us: float) -> Event:
    return mark(f"ProfilerStep#{number}", start_us, end_us)


def mark(name: str, start_us: float, end_us: float, tid: int = 1) -> Event:
    return _event("user_annotation", name, start_us, end_us, pid=100, tid=tid)


def host(name: str, start_us: float, end_us: float, tid: int = 1, cat: str = "cpu_op") -> Event:
    return _event(cat, name, start_us, end_us, pid=100, tid=tid)


def _event(cat: str, name: str, start_us: float, end_us: float, **more: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "ts": start_us, "dur": round(end_us - start_us, 3), **more}


def write(path: Path, *events: Event, rank: int | None = 0, world_size: int = 1, **metadata: Any) -> Path:
    """The events as a trace file."""
    told = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world_size}}
    path.write_text(
        json.dumps({"schemaVersion": 1, **told, "traceEvents": list(events), **metadata}, indent=1)
    )
    return path
