"""Training scripts of a few lines, each a process of its own: the tests are about how a process ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_START = """
import os, sys, threading, time
import train_ledger
import train_ledger.signals.ending.ending as ending
ending._FLUSH_S = ending._DUMP_S = 3.0  # other processes may have the cores for as long
monitor = train_ledger.start({run!r})
"""


def begin(run: Path, script: str, environ: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a script that has called start(); it is to print a line when it is where the test wants it."""
    return subprocess.Popen(
        [sys.executable, "-c", _START.format(run=str(run)) + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environ or {})},
    )


def run_to_end(
    run: Path, script: str, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end; at most two minutes."""
    process = begin(run, script, environ)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def ready(process: subprocess.Popen[str]) -> str:
    """The line that the script prints when it is there."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.stderr.read() if process.stderr else ""
    return line.strip()


def signal_lines(run: Path, rank: int = 0) -> list[dict[str, Any]]:
    path = run / "signals" / f"rank_{rank:05d}.jsonl"
    content = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in content.splitlines()]


def events(run: Path, name: str | None = None) -> list[dict[str, Any]]:
    found = [line for line in signal_lines(run) if "event" in line]
    return found if name is None else [line for line in found if line["event"] == name]


def wait_for(true: Callable[[], object], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, "did not come in time"
        time.sleep(0.02)
