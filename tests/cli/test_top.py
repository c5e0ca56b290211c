"""`train-ledger top` looks on: it writes nothing and needs no keeper."""

from __future__ import annotations

import json
import shutil
import termios
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from terminals import Terminal, train_ledger
from train_ledger.cli import app
from train_ledger.run_dir import RunDir


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "r42")
    run.signals.mkdir(parents=True)
    run.run_json.write_text(json.dumps({"run": "r42", "world_size": 2}))
    t = time.time() - 60
    for rank in range(2):
        start = {"t": t, "rank": rank, "event": "run_start", "world_size": 2, "host": "n0"}
        steps = [
            {"t": t + step, "step": step, "rank": rank, "loss": 2.0, "step_time_s": 1.0, "mfu": 41.0}
            for step in range(1, 61)
        ]
        lines = "".join(json.dumps(line) + "\n" for line in (start, *steps))
        run.signals_of(rank).write_text(lines)
    return run


def test_where_no_terminal_reads_it_is_shown_once(run_dir: RunDir) -> None:
    done = CliRunner().invoke(app, ["top", str(run_dir.path)])
    assert done.exit_code == 0
    assert done.stdout.startswith("r42  nothing wrong: step 60")
    assert "\x1b" not in done.stdout
    assert sorted(path.name for path in run_dir.path.iterdir()) == ["run.json", "signals"]


def test_as_json(run_dir: RunDir) -> None:
    answer = json.loads(CliRunner().invoke(app, ["top", str(run_dir.path), "--json"]).stdout)
    assert (answer["schema"], answer["state"]["step"], answer["tone"]) == (1, 60, "fine")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["/nowhere"], "there is no such run directory"),
        ([".", "--every-s", "0"], "is not from 0.1 to 86400 seconds"),
        ([".", "--ranks", "0"], "greater than or equal to 1"),
    ],
)
def test_wrong_usage_is_told_in_a_line(arguments: list[str], why: str) -> None:
    done = CliRunner().invoke(app, ["top", *arguments])
    assert done.exit_code == 2
    assert why in done.stderr


def test_shown_once_it_ends_with_the_status_of_what_stands_first(run_dir: RunDir) -> None:
    assert CliRunner().invoke(app, ["top", str(run_dir.path), "--once"]).exit_code == 0
    (run_dir.path / "train-ledger.toml").write_text("[alerts]\nstall_floor_s = 1\n")
    for rank in range(2):
        lines = run_dir.signals_of(rank).read_text().replace('"step_time_s": 1.0', '"step_time_s": 0.01')
        old = [line for line in lines.splitlines() if json.loads(line)["t"] < time.time() - 30]
        run_dir.signals_of(rank).write_text("".join(f"{line}\n" for line in old))
    stalled = CliRunner().invoke(app, ["top", str(run_dir.path), "--json"])
    assert (json.loads(stalled.stdout)["tone"], stalled.exit_code) == ("trouble", 1)
    for rank in range(2):
        run_dir.signals_of(rank).unlink()
    assert CliRunner().invoke(app, ["top", str(run_dir.path)]).exit_code == 3


def step(run_dir: RunDir, number: int) -> None:
    for rank in range(2):
        with run_dir.signals_of(rank).open("a") as file:
            file.write(json.dumps({"t": time.time(), "step": number, "rank": rank, "loss": 2.0}) + "\n")


@pytest.mark.slow
def test_in_a_terminal_it_follows_the_run_and_the_size_until_q(run_dir: RunDir) -> None:
    with Terminal(train_ledger("top", run_dir.path, "--every-s", "0.2"), columns=120, rows=40) as terminal:
        screen = terminal.screen
        terminal.until(lambda: "step 60" in screen.text)
        assert (screen.is_alternate, screen.shows_cursor) == (True, False)
        step(run_dir, 61)
        terminal.until(lambda: "step 61" in screen.text)
        terminal.resize(40, 20)
        terminal.until(lambda: "q quits" in screen.text)
        assert screen.text.startswith("r42  nothing wrong: step 61")
        shutil.rmtree(run_dir.path)
        terminal.until(lambda: "cannot be read any more" in screen.text)
        terminal.type(b"q")
        assert terminal.end() == 0
        assert (screen.text, screen.is_alternate, screen.shows_cursor) == ("", False, True)


@pytest.mark.slow
def test_ctrl_c_leaves_the_terminal_as_it_was(run_dir: RunDir) -> None:
    with Terminal(train_ledger("top", run_dir.path)) as terminal:
        before = termios.tcgetattr(terminal.fd)
        terminal.until(lambda: "q quits" in terminal.screen.text)
        assert termios.tcgetattr(terminal.fd) != before
        terminal.type(b"\x03")
        assert terminal.end() == 0
        assert termios.tcgetattr(terminal.fd) == before
        assert (terminal.screen.text, terminal.screen.shows_cursor) == ("", True)


@pytest.mark.slow
def test_a_run_that_has_not_begun_is_followed_from_its_first_line_on(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.signals.mkdir()
    run.run_json.write_text(json.dumps({"run": "r43", "world_size": 2}))
    with Terminal(train_ledger("top", run.path, "--every-s", "0.2")) as terminal:
        terminal.until(lambda: "nothing was heard of this run yet" in terminal.screen.text)
        step(run, 1)
        terminal.until(lambda: "step 1" in terminal.screen.text)


def test_a_terminal_that_cannot_go_back_is_shown_it_once(run_dir: RunDir) -> None:
    with Terminal(train_ledger("top", run_dir.path), environment={"TERM": "dumb"}) as terminal:
        assert terminal.end() == 0
        assert b"\x1b" not in terminal.said
        assert terminal.screen.lines[0].startswith("r42  nothing wrong: step 60")
