"""Bad input is answered by one line, never by a traceback, whatever the verb."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rights import needs_locks, train_ledger_without_rights
from train_ledger.cli import app

OF_A_RUN = ("diagnose", "watch", "export", "postmortem", "stacks")


def _ends_in_one_line(arguments: Sequence[str | Path]) -> str:
    """What `train-ledger` says of input that it refuses."""
    ended = CliRunner().invoke(app, [*map(str, arguments)], prog_name="train-ledger", catch_exceptions=False)
    assert ended.stdout == ""
    assert ended.stderr.startswith("train-ledger: ")
    assert ended.stderr.count("\n") == 1
    assert ended.exit_code == 2
    return ended.stderr


@pytest.mark.parametrize("arguments", [["diagnose", "gone"], ["hang"], ["no-such-verb"]], ids=" ".join)
def test_the_same_from_a_shell(arguments: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "train_ledger", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"{_ends_in_one_line(arguments)}"


@pytest.mark.parametrize("verb", OF_A_RUN)
def test_a_run_that_is_not_there(verb: str, tmp_path: Path) -> None:
    assert "no such run directory" in _ends_in_one_line([verb, tmp_path / "gone"])


@pytest.mark.parametrize("verb", OF_A_RUN)
def test_a_file_where_a_run_directory_is_wanted(verb: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(64))
    assert "is a file" in _ends_in_one_line([verb, file])


@pytest.mark.parametrize("verb", ["dump", "watch"])
def test_nothing_is_made_in_a_folder_that_is_no_run(verb: str, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "r42"
    (run / "signals").mkdir(parents=True)
    (run / "comm_traces").mkdir()
    (run / "comm_traces" / "rank_0").write_bytes(b"\x80\x02.")
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / "rank_0").write_bytes(b"\x80\x02.")
    before = sorted(tmp_path.rglob("*"))
    for wrong in (run / "comm_traces", tmp_path / "runs"):
        assert f": train-ledger {verb} {run}\n" in _ends_in_one_line([verb, wrong])
    assert f": train-ledger hang {tmp_path}/dumps\n" in _ends_in_one_line([verb, tmp_path / "dumps"])
    assert "name the folder that the job gives" in _ends_in_one_line([verb, tmp_path])
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("verb", OF_A_RUN)
def test_a_configuration_that_is_broken(verb: str, tmp_path: Path) -> None:
    (tmp_path / "train-ledger.toml").write_text("[alerts]\nstall_flour_s = 1\n")
    assert "unknown key stall_flour_s" in _ends_in_one_line([verb, tmp_path])


@pytest.mark.parametrize("verb", sorted({*OF_A_RUN} - {"postmortem"}))
def test_a_run_json_that_is_no_json(verb: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(b"\x00\xff garbage")
    assert "run.json" in _ends_in_one_line([verb, tmp_path])


def test_a_postmortem_of_nothing(tmp_path: Path) -> None:
    assert "incident" in _ends_in_one_line(["postmortem", tmp_path])


@pytest.mark.parametrize(
    "arguments",
    [
        ["hang"],
        ["hang", "{tmp}/gone"],
        ["hang", "{tmp}/empty"],
        ["hang", "--run", "{tmp}/gone"],
        ["hang", "{tmp}/garbage", "--stacks", "{tmp}/gone"],
        ["stacks", "{tmp}", "--pid", "1"],
        ["stacks", "--launcher", "ssh"],
        ["stacks", "--launcher", "no-such-launcher", "--hosts", "a"],
        ["stacks", "--launcher", "ssh", "--hosts", "-oProxyCommand=x"],
        ["stacks", "--launcher", "ssh", "--hosts", "@{tmp}/no-such-file"],
        ["stacks", "--hosts", "a"],
        ["stacks", "--full"],
        ["dump", "{tmp}/empty", "--hosts", "a"],
        ["dump", "{tmp}/empty", "--into", "{tmp}"],
        ["dump", "{tmp}/empty", "--send"],
        ["stacks", "{tmp}"],
        ["stacks", "--from", "{tmp}/gone"],
        ["stacks", "--from", "{tmp}/garbage"],
        ["stacks", "--pid", "0"],
        ["demo", "--mode", "dance"],
        ["demo", "--culprit", "4"],
        ["demo", "--run", "{tmp}"],
        ["demo", "--ranks", "one"],
        ["drill", "hang", "--culprit", "9"],
        ["drill", "paging"],
        ["diagnose", "{tmp}", "--at", "yesterday"],
        ["watch", "{tmp}", "--port", "123456"],
        ["diagnose", "{tmp}", "--at", "1e300"],
        ["export", "{tmp}", "--every-s", "inf"],
        ["export", "{tmp}", "--every-s", "nan"],
        ["export", "{tmp}", "--every-s", "1e300"],
        ["stacks", "{tmp}", "--timeout-s", "inf"],
        ["stacks", "{tmp}", "--timeout-s", "0"],
        ["stacks", "--pid", "99999999999999999999"],
        ["drill", "hang", "--ranks", "1000000"],
        ["drill", "hang", "--hang-at", "1000000000000000000000"],
        ["demo", "--ranks", "65"],
        ["no-such-verb"],
        ["hang", "--no-such-option"],
    ],
    ids=" ".join,
)
def test_wrong_usage(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "garbage").write_bytes(os.urandom(256))
    (tmp_path / "empty").mkdir()
    _ends_in_one_line([argument.format(tmp=tmp_path) for argument in arguments])


@needs_locks
def test_a_run_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "run.json").chmod(0)
    ended = train_ledger_without_rights("diagnose", tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"train-ledger: {tmp_path}/run.json: ")
    assert ("Permission denied" in ended.stderr, ended.stderr.count("\n")) == (True, 1)


@pytest.mark.parametrize("verb", sorted({*OF_A_RUN} - {"postmortem"}))
@pytest.mark.parametrize("kind", ["FIFO", "nested too deeply"])
def test_a_run_json_that_would_never_end(verb: str, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    os.mkfifo(file) if kind == "FIFO" else file.write_text('{"a":' * 100_000)
    assert kind in _ends_in_one_line([verb, tmp_path])


@pytest.mark.parametrize("verb", OF_A_RUN)
def test_a_configuration_that_is_a_fifo(verb: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train-ledger.toml")
    assert "train-ledger.toml: is a FIFO" in _ends_in_one_line([verb, tmp_path])


def test_a_journal_that_is_a_fifo(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    os.mkfifo(tmp_path / "ledger" / "journal.jsonl")
    assert "journal.jsonl: cannot be read (is a FIFO" in _ends_in_one_line(["postmortem", tmp_path])


def test_a_folder_where_a_file_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    assert "run.json" in _ends_in_one_line(["diagnose", tmp_path])


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "run").mkdir()
    assert "file" in _ends_in_one_line(
        ["diagnose", tmp_path / "run", "--html", tmp_path / "file" / "report.html"]
    )
