"""How are the stacks of running ranks taken from outside?

By py-spy, which reads another process's memory and needs nothing from it: not its interpreter lock, not its
signal handlers. It pauses the process for some milliseconds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from train_ledger.headway import counted
from train_ledger.run_dir import write_atomically

__all__ = ["take"]

_AT_ONCE = 16


def take(pids: Mapping[int, int], folder: Path, *, timeout_s: float, native: bool = False) -> dict[int, str]:
    """Write the stack of each rank (rank → process id on this host) to folder/rank_N.json.

    Ends after `timeout_s` seconds in all. What failed is returned, rank → why; it never raises for a process
    that is gone or may not be read.
    """
    program = _program()
    if program is None:
        return dict.fromkeys(pids, "py-spy is not installed: pip install py-spy")
    deadline = time.monotonic() + timeout_s

    def of_rank(rank: int) -> str | None:
        return _take_one(program, pids[rank], folder / f"rank_{rank}.json", deadline, native)

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        came = threads.map(of_rank, pids)
        whys = {rank: next(came) for rank in counted(pids, "taking stacks", "ranks")}
    return {rank: why for rank, why in whys.items() if why is not None}


def _program() -> str | None:
    """py-spy beside this interpreter, as its wheel puts it there, else on the path."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.is_file() else shutil.which("py-spy")


def _take_one(program: str, pid: int, file: Path, deadline: float, native: bool) -> str | None:
    command = [program, "dump", "--json", "--pid", str(pid), *(["--native"] if native else [])]
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        return "not asked: the time for stacks was over"
    try:
        result = subprocess.run(command, capture_output=True, timeout=left_s, check=False)
    except subprocess.TimeoutExpired:
        return f"py-spy did not end within {left_s:.0f} s"
    except OSError as error:
        return f"py-spy cannot be run: {error.strerror}"
    if result.returncode != 0:
        return _words(result.stderr, result.returncode)
    try:
        write_atomically(file, result.stdout)
    except OSError as error:
        return f"{file}: {error.strerror}"
    return None


def _words(stderr: bytes, status: int) -> str:
    """py-spy's own reason in one line, and what helps where it may not read the process."""
    text = stderr.decode("utf-8", "replace").partition("Stack backtrace")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    may_read = "ermission" not in text
    if may_read and any("Failed to get process executable name" in line for line in lines):
        return "there is no such process any more"
    said = (lines[0] if lines else f"py-spy ended with status {status}")[:200]
    if not may_read:
        said += " (run as the job's own user, or with CAP_SYS_PTRACE)"
    return said
