"""`train-ledger gantt` writes a file that is a whole trace, or says in one line why not."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ops.traces import of, sound_events
from train_ledger.chaos import fleet
from train_ledger.cli import app


def _gantt(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["gantt", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    fleet.write(tmp_path / "r42", hosts=2, ranks_per_host=2, steps=12, clock_offsets_s={"node001": 30.0})
    return tmp_path / "r42"


def test_a_packed_trace_and_what_is_said_of_it(run: Path, tmp_path: Path) -> None:
    output = tmp_path / "gantt.json.gz"
    answer = _gantt(run, "-o", output)
    assert answer.exit_code == 0, answer.output
    assert f"{output}: 4 ranks on 2 hosts, 48 steps and 4 spans" in answer.stdout
    assert "corrected: the clock of node001 is +30." in answer.stdout or "+29.99" in answer.stdout
    events = sound_events(output.read_bytes())
    assert gzip.decompress(output.read_bytes()).startswith(b'{"displayTimeUnit":"ms","traceEvents":[')
    assert len(of(events, cat="step")) == 48


def test_the_answer_for_scripts(run: Path, tmp_path: Path) -> None:
    answer = _gantt(run, "-o", tmp_path / "g.json", "--steps", "3:4", "--ranks", "0,3", "--json")
    told = json.loads(answer.stdout)
    assert (told["schema"], told["ranks"], told["steps"], told["attempts"]) == (1, 2, 4, [0])
    assert told["not_read"] == []
    assert len(sound_events((tmp_path / "g.json").read_bytes())) == told["events"]


def test_moments_are_those_of_the_other_verbs(run: Path, tmp_path: Path) -> None:
    answer = _gantt(run, "-o", tmp_path / "g.json", "--since", "2027-01-15T08:00:40+00:00", "--json")
    assert 0 < json.loads(answer.stdout)["steps"] < 48


def test_the_logs_may_be_left_out(run: Path, tmp_path: Path) -> None:
    (run / "logs").mkdir()
    (run / "logs" / "train.log").write_text("RuntimeError: CUDA out of memory\n" * 3)
    for extra, faults in (["--logs"], True), (["--no-logs"], False):
        answer = _gantt(run, "-o", tmp_path / "g.json", "--json", *extra)
        told = json.loads(answer.stdout)
        assert bool(told["faults_in_logs"] or told["not_read"]) is faults


def test_where_nothing_is_drawn_it_cannot_tell(run: Path, tmp_path: Path) -> None:
    answer = _gantt(run, "-o", tmp_path / "g.json", "--steps", "900:")
    assert answer.exit_code == 3
    assert "nothing of what was asked for is in it" in answer.stdout
    assert sound_events((tmp_path / "g.json").read_bytes())
    junk = tmp_path / "notes.txt"
    junk.write_bytes(os.urandom(5000).replace(b"{", b"") + b"\n")
    answer = _gantt(junk, "-o", tmp_path / "g.json")
    assert answer.exit_code == 3
    assert "not_json" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["gone"], "gone: there is no such file or folder"),
        (["r42", "--steps", "9:3"], "the last is before the first"),
        (["r42", "--ranks", "all"], "'all' are no ranks"),
        (["r42", "-o", "none/g.json"], "there is no folder none"),
        (["r42", "-o", "r42"], "is a folder"),
        (["r42", "--since", "noon"], "'noon' is no time"),
    ],
)
def test_bad_input_is_one_line(
    run: Path, arguments: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.parent)
    answer = _gantt(*arguments)
    assert (answer.exit_code, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)
    assert told in answer.stderr
    assert [it.name for it in run.parent.iterdir()] == ["r42"]


def test_a_trace_that_is_interrupted_leaves_the_old_one(run: Path, tmp_path: Path) -> None:
    output = tmp_path / "g.json"
    output.write_text("the old one")
    (run / "signals" / "rank_00001.jsonl").write_bytes(b"\n" * 40_000_000)
    command = [sys.executable, "-m", "train_ledger", "gantt", str(run), "-o", str(output)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        while not list(tmp_path.glob(".g.json.*")):
            assert process.poll() is None
            time.sleep(0.005)
        process.terminate()
    assert process.returncode == -15
    assert output.read_text() == "the old one"
    assert list(tmp_path.glob(".g.json.*")) == []


def test_into_a_pipe(run: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        assert _gantt(run, "-o", pipe).exit_code == 0
        assert reader.stdout is not None
        assert len(of(sound_events(reader.stdout.read()), cat="step")) == 48


def test_a_fifo_that_nobody_reads_is_told_and_not_waited_for(run: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ended = _gantt(run, "-o", tmp_path / "pipe")
    assert (ended.exit_code, "nobody reads it" in ended.stderr) == (2, True)


def test_figures_beyond_all_measure_break_no_trace(run: Path, tmp_path: Path) -> None:
    file = run / "signals" / "rank_00000.jsonl"
    more = [{"step_time_s": 1e308, "fwd_s": 1e308}, {"step_time_s": -1e308, "bwd_s": "Infinity"}]
    with file.open("a") as signals:
        for number, values in enumerate(more):
            signals.write(json.dumps({"t": 9e10, "step": 10**6 + number, "rank": 0, **values}) + "\n")
    ended = _gantt(run, "-o", tmp_path / "g.json")
    assert ended.exit_code == 0
    json.loads((tmp_path / "g.json").read_text())
