"""What somebody has put in the place of a file holds nobody up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from train_ledger.signals.ending.last_words import FatalStacks
from train_ledger.signals.harmless.regular import open_regular
from train_ledger.signals.writing.attempt import next_attempt


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_RDWR])
def test_a_fifo_and_a_device_are_refused(tmp_path: Path, flags: int) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/null")):
        with pytest.raises(OSError):  # noqa: PT011 – which one depends on who holds the other end
            open_regular(path, flags)


def test_a_fifo_in_the_place_of_the_stacks_or_of_the_signals(tmp_path: Path) -> None:
    path = tmp_path / "rank_0"
    os.mkfifo(path)
    stacks = FatalStacks(path)
    stacks._enable()
    assert stacks._file is None
    assert next_attempt(path, {}) == 0


def test_no_file_of_ours_has_the_number_of_a_closed_stderr(tmp_path: Path) -> None:
    script = f"""
import os, train_ledger
monitor = train_ledger.start({str(tmp_path)!r})
monitor.step(1)
monitor.logger.flush(60)
try:
    os.write(2, b"of a library in C")
except OSError:
    pass
"""
    closed = 'exec "$0" -c "$1" 2>&-'
    subprocess.run(["/bin/sh", "-c", closed, sys.executable, script], check=True, timeout=120)
    assert b"of a library" not in (tmp_path / "signals" / "rank_00000.jsonl").read_bytes()
