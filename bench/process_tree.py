"""How long does a command take, and how much memory do all its processes hold together?

Resident memory is summed over the processes, so what they share – the interpreter – counts for each of them.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Run", "run"]

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_LOOKS_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class Run:
    """Wall time, processor time and peak of resident memory of all processes together, and what they said."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    said: str


def run(command: list[str]) -> Run:
    """Run to the end, whatever the exit status."""
    before, peak = _children_cpu_s(), 0
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        with subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT) as process:
            while process.poll() is None:
                peak = max(peak, _resident(process.pid))
                time.sleep(_LOOKS_EVERY_S)
        wall_s = time.perf_counter() - started
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    return Run(wall_s, _children_cpu_s() - before, peak, text)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident(pid: int) -> int:
    """Of the process and all below it; one that ends meanwhile counts for nothing."""
    total = 0
    with contextlib.suppress(OSError):
        total = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
        for listed in Path(f"/proc/{pid}/task").glob("*/children"):
            total += sum(_resident(int(child)) for child in listed.read_text().split())
    return total
