"""A real run stands still, and real messages arrive – or the drill says what was not as promised."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from train_ledger import config
from train_ledger.answer import ExitCode
from train_ledger.chaos import page_drill as drills
from train_ledger.chaos import servers
from train_ledger.chaos.page_outcome import as_object, as_text, judge
from train_ledger.chaos.webhook import Arrival
from train_ledger.config import Alerts, Notify, Respond
from train_ledger.run_dir import RunDir
from waiting import wait_until

STOPPED_T = 1_800_000_000.0
needs_servers = pytest.mark.skipif(
    bool(servers.missing_servers()), reason="prometheus and prometheus-alertmanager are not installed"
)


def message(after_s, title="r1: TrainingStepStalled – unknown, nobody accused"):
    return Arrival(STOPPED_T + after_s, {"title": title, "message": "r1: no step completed for 11 s"})


def seen(*arrivals, others=None):
    return judge("embedded", 10.0, STOPPED_T, arrivals, others)


# -- what counts as a page in time


def test_one_message_within_twenty_seconds_of_the_threshold_is_as_promised():
    drilled = seen(message(29.9))
    assert (drilled.ok, drilled.notified_s, drilled.messages) == (True, 29.9, 1)
    assert as_text(drilled).startswith(
        "ok: notified by train-ledger watch 29.9 s after the last step, 19.9 s"
    )


@pytest.mark.parametrize(
    ("arrivals", "why_not"),
    [
        ((), "no message came"),
        ((message(30.2),), "20.2 s after the threshold"),
        ((message(8.0),), "before the threshold"),
        ((message(12.0), message(13.0)), "2 messages instead of one"),
        ((message(12.0, "r1: TrainingProcessGone"),), "does not speak of the stall"),
        ((Arrival(STOPPED_T + 12, b"no JSON"),), "does not speak of the stall"),
    ],
)
def test_anything_else_is_not(arrivals, why_not):
    drilled = seen(*arrivals)
    assert not drilled.ok
    assert why_not in drilled.why_not
    assert why_not in as_text(drilled)


def test_an_address_that_did_not_take_it_is_said():
    drilled = seen(message(12.0), others="partly: slack://…: not accepted")
    assert as_object(drilled)["ok"] is False
    assert "slack://…" in as_text(drilled)


def test_alertmanager_s_messages_are_read_too_and_nothing_moves_the_cursor():
    alert = {"labels": {"alertname": "TrainingStepStalled"}, "annotations": {"summary": "r1: \x1b[2Jno step"}}
    drilled = judge("prometheus", 10.0, STOPPED_T, [Arrival(STOPPED_T + 17, {"alerts": [alert]})])
    assert drilled.ok
    assert "\x1b" not in as_text(drilled)


def test_the_settings_of_the_run_are_those_that_were_given(tmp_path):
    alerts, respond = Alerts(stall_floor_s=3.5, group_wait_s=1e-7), Respond(on_page=("diagnose",))
    notify = Notify(urls=('json://h/"\\\x7f\n#é',), command=("tell", "a b"))
    run_dir = RunDir(tmp_path)
    run_dir.config_file.write_text(
        drills._toml({"alerts": alerts, "notify": notify, "respond": respond}), encoding="utf-8"
    )
    read = config.load(run_dir)
    assert (read.alerts, read.notify, read.respond) == (alerts, notify, respond)


# -- real ones


def drill(*arguments, **others):
    command = [sys.executable, "-m", "train_ledger", "drill", "page", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, **others)


def test_who_wants_prometheus_and_has_none_is_told_in_one_line():
    done = drill("--prometheus", env={**os.environ, "PATH": "/nonexistent"})
    assert done.returncode == ExitCode.BAD_INPUT
    assert done.stderr.count("\n") == 1
    assert "prometheus and alertmanager: not installed; --no-prometheus" in done.stderr


def test_where_nobody_is_configured_nobody_can_be_told(tmp_path):
    (tmp_path / "train-ledger.toml").write_text("[alerts]\nstall_floor_s = 3\n")
    done = drill("--configured", "--run", str(tmp_path))
    assert done.returncode == ExitCode.BAD_INPUT
    assert f"{tmp_path}/train-ledger.toml: [notify] names no urls and no command" in done.stderr


@needs_servers
@pytest.mark.slow
def test_the_page_comes_once_and_in_time_by_both_ways(tmp_path):
    of_its_own = tmp_path / "tmp"  # others may drill at the same time
    of_its_own.mkdir()
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "TMPDIR": str(of_its_own)}
    done = drill("--json", "--prometheus", env=environ)
    assert done.returncode == ExitCode.NOTHING_WRONG, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["schema"] == 1
    assert [each["path"] for each in answer["drills"]] == ["embedded", "prometheus"]
    for each in answer["drills"]:
        assert each["ok"]
        assert each["messages"] == 1
        assert each["threshold_s"] <= each["notified_s"] <= each["threshold_s"] + each["within_s"]
        assert "drill-nothing-is-wrong" in each["message"]
    assert list(of_its_own.iterdir()) == []


@pytest.mark.slow
def test_those_who_are_configured_are_told_too_and_one_that_fails_is_trouble(tmp_path):
    (tmp_path / "train-ledger.toml").write_text(
        f'[notify]\ncommand = ["{sys.executable}", "-c", "raise SystemExit(3)"]\n'
    )
    done = drill("--no-prometheus", "--run", str(tmp_path), "--configured", "--threshold-s", "3")
    assert done.returncode == ExitCode.TROUBLE, done.stdout + done.stderr
    assert "exit status 3" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_everything_is_ended_when_the_drill_is(number, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "train_ledger", "drill", "page"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()  # the job is about to start, all servers are up
    wait_until(lambda: running_in(tmp_path))
    process.send_signal(number)
    process.communicate(timeout=180)
    assert process.returncode == 130
    wait_until(lambda: not running_in(tmp_path))  # one that was about to start dies of its tether, not by us
    assert list(tmp_path.iterdir()) == []


def running_in(folder):
    """Processes whose command line names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in text:
            found.append(text)
    return found
