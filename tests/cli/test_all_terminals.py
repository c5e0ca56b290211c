"""Whatever the terminal, pipe or encoding: no verb colours where it may not, and none breaks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.test_help import ALL
from terminals import Terminal
from train_ledger.cli import app
from train_ledger.run_dir import RunDir

_COLOUR = re.compile(rb"\x1b\[[\d;]*m")
_RANKS = 4
_FRAME = 'Thread 0x1 (most recent call first):\n  File "train.py", line 8 in batch\n'

COMMANDS = {
    "hang": "hang {run}",
    "stacks": "stacks --from {run}/stacks",
    "dump": "dump {run} --wait-s 0.1",
    "ask": "ask {run} profile --wait-s 0.1",
    "diagnose": "diagnose {run}",
    "rank": "rank {run} 1",
    "coverage": "coverage {run}",
    "slow": "slow {run}",
    "read": "read {run}",
    "watch": "watch /nowhere–",
    "respond": "respond {run} --dry-run",
    "top": "top {run} --once",
    "export": "export {run} --once",
    "deploy": "deploy --out {new}",
    "gantt": "gantt {run} -o {new}",
    "lint": "lint {run}",
    "backtest": "backtest {run}",
    "postmortem": "postmortem {run}",
    "preflight": "preflight {run} --only disk",
    "note": "note {run} seen",
    "report": "report {run}",
    "runbook": "runbook TrainingStepStalled --run {run}",
    "account": "account {run}",
    "cost": "cost {run}",
    "demo": "demo --fault –",
    "drill hang": "drill hang --fault –",
    "drill page": "drill page /nowhere–",
    "drill slow": "drill slow --fault –",
    "trace breakdown": "trace breakdown {run}/trace.json",
    "trace diff": "trace diff {run}/trace.json {run}/trace.json",
    "trace take": "trace take /nowhere–",
    "trace memory": "trace memory {run}/run.json",
    "trace nsys": "trace nsys {run}/run.json",
    "nsys": "nsys /nowhere–",
}
"""What each does with a run that stands; of those that would go on for long what they refuse."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = RunDir(tmp_path_factory.mktemp("runs") / "r42–é")
    made.signals.mkdir(parents=True)
    made.run_json.write_text(json.dumps({"run": "r42–é", "world_size": _RANKS}))
    t = time.time() - 600
    for rank in range(_RANKS):
        start = {"t": t, "rank": rank, "event": "run_start", "world_size": _RANKS, "host": "n\x1b[31m–"}
        steps = [
            {"t": t + step, "step": step, "rank": rank, "loss": 2.0, "step_time_s": 1.0, "compute_s": 0.5}
            for step in range(1, 61)
        ]
        made.signals_of(rank).write_text("".join(json.dumps(line) + "\n" for line in (start, *steps)))
    (made.path / "stacks").mkdir()
    for rank in range(_RANKS):
        (made.path / "stacks" / f"rank_{rank}.txt").write_text(_FRAME)
    (made.path / "logs").mkdir()
    (made.path / "logs" / "train.log").write_text("step 1 loss 2.31\n\x1b[31mValueError: – 人\n")
    (made.path / "trace.json").write_text('{"traceEvents": []}')
    return made.path


_EACH = """
import json, os, sys
import train_ledger.cli, train_ledger.cli.command_line
import train_ledger.dash, train_ledger.ops, train_ledger.slow, train_ledger.sources.reading.reading
import train_ledger.watch.following, train_ledger.watch.top
for verb, arguments in json.loads(sys.argv[1]).items():
    child = os.fork()
    if child == 0:
        if {reader_has_left}:
            reading, writing = os.pipe()
            os.close(reading)
            os.dup2(writing, 1)
        sys.argv = ["train-ledger", *arguments]
        train_ledger.cli.main()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(1, f"\\n== {{verb}} {{status}}\\n".encode())
"""
_MARK = re.compile(rb"\r?\n== (?P<verb>[a-z ]+) (?P<status>-?\d+)\r?\n")


def each(run: Path, tmp_path: Path, *, reader_has_left: bool = False) -> list[str]:
    """A command that does one verb after the other, each in a process of its own that is there at once."""
    arguments = {
        verb: [word.format(run=run, new=tmp_path / verb.replace(" ", "_")) for word in words.split()]
        for verb, words in COMMANDS.items()
    }
    return [sys.executable, "-c", _EACH.format(reader_has_left=reader_has_left), json.dumps(arguments)]


def parts(said: bytes) -> dict[str, tuple[bytes, int]]:
    """What each verb said, and its exit status."""
    pieces = _MARK.split(said)
    return {
        verb.decode(): (text, int(status))
        for text, verb, status in zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=False)
    }


def test_every_verb_is_looked_at() -> None:
    assert set(COMMANDS) == set(ALL)


@pytest.mark.slow
def test_a_narrow_terminal_without_colour_and_without_utf8(run: Path, tmp_path: Path) -> None:
    environment = {"NO_COLOR": "1", "PYTHONIOENCODING": "ascii"}
    with Terminal(each(run, tmp_path), columns=40, environment=environment) as terminal:
        assert terminal.end(600) == 0
    told = parts(terminal.said)
    assert set(told) == set(COMMANDS)
    assert {verb: status for verb, (_, status) in told.items() if status not in (0, 1, 2, 3)} == {}
    assert [verb for verb, (text, _) in told.items() if b"fault of train-ledger itself" in text] == []
    assert [verb for verb, (text, _) in told.items() if _COLOUR.search(text)] == []
    assert [verb for verb, (text, _) in told.items() if not text.isascii()] == []
    assert [verb for verb, (text, _) in told.items() if not text.strip()] == []


@pytest.mark.slow
def test_a_reader_that_has_left(run: Path, tmp_path: Path) -> None:
    command = each(run, tmp_path, reader_has_left=True)
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
    )
    told = parts(ended.stdout)
    assert set(told) == set(COMMANDS)
    assert {verb: status for verb, (_, status) in told.items() if status not in (1, 2, 3, 130)} == {}
    assert [verb for verb, (text, _) in told.items() if b"Traceback" in text or b"\x1b" in text] == []


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_help_is_plain(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    for columns in ("40", "400"):
        monkeypatch.setenv("COLUMNS", columns)
        told = CliRunner().invoke(app, [*verb.split(), "--help"])
        assert (told.exit_code, "\x1b" in told.stdout) == (0, False)


@pytest.mark.slow
def test_in_a_pipe_nothing_is_coloured_unless_it_is_asked_for(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["diagnose", "slow", "account", "cost", "top"]
    for verb in answers:
        assert "\x1b" not in CliRunner().invoke(app, [verb, str(run)]).stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = [verb for verb in answers if "\x1b" in CliRunner().invoke(app, [verb, str(run)]).stdout]
    assert {"diagnose", "slow", "top"} <= set(coloured)
    for verb in answers:
        assert "\x1b" not in CliRunner().invoke(app, [verb, str(run), "--json"]).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    for verb in answers:
        assert "\x1b" not in CliRunner().invoke(app, [verb, str(run)]).stdout
