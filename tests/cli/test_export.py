"""The sidecar, as it is started on a node."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from train_ledger.cli import app


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two ranks, one of them on another host, after their third step."""
    (tmp_path / "signals").mkdir()
    (tmp_path / "run.json").write_text('{"run": "r42", "world_size": 2}')
    for rank, host in enumerate([socket.gethostname(), "node-7"]):
        start = {"t": 1.0, "event": "run_start", "rank": rank, "host": host, "pid": 1, "world_size": 2}
        steps = [{"t": 2.0 + step, "step": step, "rank": rank, "loss": 2.5} for step in (1, 2, 3)]
        lines = "".join(json.dumps(line) + "\n" for line in [start, *steps])
        (tmp_path / "signals" / f"rank_{rank:05d}.jsonl").write_text(lines)
    return tmp_path


def _steps(metrics: str) -> dict[str, float]:
    families = {family.name: family for family in text_string_to_metric_families(metrics)}
    return {sample.labels["rank"]: sample.value for sample in families["train_step"].samples}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "train-ledger"


def test_once_prints_what_a_scrape_would_read(run: Path) -> None:
    told = CliRunner().invoke(app, ["export", str(run), "--once"], catch_exceptions=False)
    assert told.exit_code == 0
    assert _steps(told.stdout) == {"0": 3.0}, "the rank of the other host is exported there"


def test_all_hosts_from_one_place(run: Path) -> None:
    told = CliRunner().invoke(
        app, ["export", str(run), "--once", "--all-hosts", "--json"], catch_exceptions=False
    )
    answer = json.loads(told.stdout)
    assert (answer["schema"], answer["run"]) == (1, "r42")
    assert _steps(answer["metrics"]) == {"0": 3.0, "1": 3.0}


def test_it_says_where_it_serves_and_ends_at_ctrl_c(run: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "train_ledger",
        "export",
        str(run),
        "--port",
        "0",
        "--json",
        "--every-s",
        "0.1",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = json.loads(process.stdout.readline())["url"]
            assert url.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(url.removesuffix("/metrics") + "/healthz", timeout=60) as answer:  # noqa: S310
                assert answer.read() == b"alive\n"
        finally:
            process.send_signal(2)
        assert process.stderr.read() == ""
        assert process.wait(90) == 130


def test_what_it_knows_is_kept_outside_the_run_for_the_next_one(run: Path, state: Path) -> None:
    command = [sys.executable, "-m", "train_ledger", "export", str(run), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        _wait_until_ready(json.loads(process.stdout.readline())["url"])
        process.send_signal(2)
        process.wait(90)
    (kept,) = state.iterdir()
    assert (kept.suffix, kept.stat().st_mode & 0o777) == (".memory", 0o600)
    assert not (run / "ledger").exists()
    kept.write_bytes(b"no memory")
    told = CliRunner().invoke(app, ["export", str(run), "--once"])
    assert _steps(told.stdout) == {"0": 3.0}
    assert told.stderr == f"train-ledger: {kept}: is damaged, or no such file at all; it is not used\n"
    silent = CliRunner().invoke(app, ["export", str(run), "--once", "--state", "none"])
    assert silent.stderr == ""


def _wait_until_ready(url: str) -> None:
    for _ in range(1200):
        try:
            urllib.request.urlopen(url, timeout=60).close()  # noqa: S310
            return
        except urllib.error.HTTPError:
            time.sleep(0.05)
    raise AssertionError("never ready")


def test_a_port_that_is_taken_is_one_line(run: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        told = CliRunner().invoke(app, ["export", str(run), "--port", str(taken.getsockname()[1])])
    assert told.exit_code == 2
    assert "--port" in told.stderr
    assert told.stderr.count("\n") == 1


def test_the_name_of_a_run_moves_no_cursor(run: Path) -> None:
    (run / "run.json").write_text(json.dumps({"run": "a\x1b[2Jb\ud800"}))
    command = [sys.executable, "-m", "train_ledger", "export", str(run), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("serving ab? at http://127.0.0.1:")
        finally:
            process.send_signal(2)
        process.wait(90)


def test_a_label_moves_no_cursor(run: Path) -> None:
    start = {"t": 1.0, "event": "run_start", "rank": 0, "host": "a\x1b[2Jb\x07"}
    (run / "signals" / "rank_00000.jsonl").write_text(json.dumps(start) + "\n")
    told = CliRunner().invoke(app, ["export", str(run), "--all-hosts", "--once"])
    assert 'host="ab\N{REPLACEMENT CHARACTER}"' in told.stdout
    assert not {"\x1b", "\x07"} & set(told.stdout)


def test_who_has_no_home_is_told_that_nothing_is_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number that no table of users knows."""
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    told = CliRunner().invoke(app, ["export", str(run), "--once"], catch_exceptions=False)
    assert told.exit_code == 0
    assert _steps(told.stdout) == {"0": 3.0}
    assert told.stderr.count("\n") == 1
    assert "--state" in told.stderr
