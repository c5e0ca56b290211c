"""`export --record-hardware`: this node's hardware beside its ranks."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from train_ledger.cli.command_line import app


@pytest.fixture
def run(tmp_path: Path) -> Path:
    signals = tmp_path / "run" / "signals"
    signals.mkdir(parents=True)
    line = {"t": time.time(), "step": 1, "rank": 0, "loss": 2.0}
    (signals / "rank_00000.jsonl").write_text(json.dumps(line) + "\n")
    return tmp_path / "run"


def test_what_the_hardware_says_is_written_and_the_exporter_ends_at_once(run: Path) -> None:
    (run / "train-ledger.toml").write_text('[hardware]\nevery_s = 1.0\nkernel_log = "none"\n')
    command = [sys.executable, "-m", "train_ledger", "export", str(run), "--port", "0", "--state", "none"]
    with subprocess.Popen([*command, "--record-hardware"], stderr=subprocess.PIPE, text=True) as exporter:
        recorded = run / "hardware" / f"{socket.gethostname()}.jsonl"
        until_s = time.monotonic() + 120
        while not (recorded.exists() and recorded.stat().st_size) and time.monotonic() < until_s:
            time.sleep(0.05)
        assert exporter.stderr is not None
        told: list[str] = []
        while not told or "not observed of the hardware" not in told[-1]:
            told.append(exporter.stderr.readline())
            assert told[-1], told
        exporter.send_signal(signal.SIGINT)
        _, said = exporter.communicate(timeout=60)
        said = "".join(told) + said
    line = json.loads(recorded.read_text().splitlines()[0])
    assert (line["host"], line["by"] in ("recorder", "nvml", "sysfs")) == (socket.gethostname(), True)
    assert said.count(f"not observed of the hardware of {socket.gethostname()}: ") == 1


def test_recording_for_one_look_is_refused(run: Path) -> None:
    ended = CliRunner().invoke(
        app, ["export", str(run), "--once", "--record-hardware"], prog_name="train-ledger"
    )
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "leave out --once" in ended.stderr
    assert not (run / "hardware").exists()
