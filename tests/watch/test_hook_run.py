"""A hook is run beside the keeper, with the verdict on its standard input."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from train_ledger.watch import hook_run
from train_ledger.watch.hook_run import HookRun, Outcome
from waiting import wait_until


def outcome(command: list[str], log: Path, wait_s: float = 60.0) -> Outcome | None:
    run = HookRun(command, {"cause": "hardware.xid", "hosts": ["$(reboot)"]}, log, wait_s)
    run.join(90)
    return run.outcome


def test_it_reads_the_verdict_and_its_last_line_is_told(tmp_path: Path) -> None:
    log = tmp_path / "hooks" / "i-exclude.log"
    said = outcome(["sh", "-c", "cat; echo; echo excluded; exit 3"], log)
    assert said == Outcome(3, "excluded")
    assert json.loads(log.read_text().splitlines()[0])["hosts"] == ["$(reboot)"]
    assert log.stat().st_mode & 0o77 == 0


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    said = outcome([str(tmp_path / "no-such")], tmp_path / "log")
    assert said == Outcome(None, "it could not be started: No such file or directory")


def test_it_may_end_without_reading(tmp_path: Path) -> None:
    assert outcome(["true"], tmp_path / "log") == Outcome(0, "")


def test_nobody_waits_for_it(tmp_path: Path) -> None:
    may_end = tmp_path / "may end"
    os.mkfifo(may_end)
    run = HookRun(["sh", "-c", 'read word < "$0"; echo "$word"', str(may_end)], {}, tmp_path / "log", 60.0)
    assert run.outcome is None
    may_end.write_text("now\n")
    run.join(60)
    assert run.outcome == Outcome(0, "now")


def test_what_takes_too_long_is_killed(tmp_path: Path) -> None:
    run = HookRun(["sleep", "600"], {}, tmp_path / "log", 0.5)
    run.join(60)
    assert run.outcome == Outcome(None, "it took longer than 0.5 s and was killed")


def test_what_it_leaves_running_goes_on_and_is_not_waited_for(tmp_path: Path) -> None:
    may_end = tmp_path / "may end"
    os.mkfifo(may_end)
    script = """(read word < "$0"; echo "$word") & echo started"""
    assert outcome(["sh", "-c", script, str(may_end)], tmp_path / "log") == Outcome(0, "started")
    may_end.write_text("1\n")
    wait_until(lambda: (tmp_path / "log").read_text() == "started\n1\n")


def test_a_last_line_cannot_move_a_cursor(tmp_path: Path) -> None:
    said = outcome([sys.executable, "-c", "print('a\\x1b[2Jb')"], tmp_path / "log")
    assert said is not None
    assert "\x1b" not in said.said


def test_one_that_writes_without_end_does_not_fill_the_disk(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(hook_run, "_LOG_BYTES", 1 << 16)
    log = tmp_path / "log"
    words = "print('x' * 99_999, flush=True)"
    script = f"""
import os, time
{words}
while os.path.getsize({str(log)!r}):  # until it is begun anew
    time.sleep(0.01)
{words}
while os.path.getsize({str(log)!r}):
    time.sleep(0.01)
print('done')
"""
    assert outcome([sys.executable, "-c", script], log) == Outcome(0, "done")
    assert log.read_text() == "done\n"


def test_what_it_is_told_may_be_long_and_it_slow_to_read(tmp_path: Path) -> None:
    told = {"diagnosis": "x" * (1 << 20)}
    script = "import sys, time; time.sleep(1); print(len(sys.stdin.read()))"
    run = HookRun([sys.executable, "-c", script], told, tmp_path / "log", 60.0)
    run.join(90)
    assert run.outcome is not None
    assert int(run.outcome.said) > 1 << 20
