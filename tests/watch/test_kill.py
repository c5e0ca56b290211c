"""Killed with -9 at any moment and started again: one page for one incident, no journal line lost."""

import random
import signal
import subprocess
import sys
import time

import pytest

from train_ledger.chaos import fleet
from train_ledger.chaos.webhook import Webhook
from train_ledger.ledger import journal
from waiting import wait_until

SETTINGS = """\
[alerts]
evaluation_interval_s = 0.1
[respond]
on_page = ["dump", "stacks", "diagnose"]
dump_wait_s = 0.5
[notify]
urls = ["{url}"]
"""


def a_hung_run(folder, webhook):
    made = fleet.write(
        folder, fault="exception", culprit=5, hosts=2, ranks_per_host=4, start_t=time.time() - 400
    )
    made.run_dir.config_file.write_text(SETTINGS.format(url=webhook.apprise_url))
    return made.run_dir


def start(run_dir):
    command = [sys.executable, "-m", "train_ledger", "watch", str(run_dir.path), "--no-web"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def kill(keeper):
    keeper.send_signal(signal.SIGKILL)
    keeper.communicate()


def wait_for(kind, run_dir, timeout_s=120):
    wait_until(lambda: count(run_dir, kind), timeout_s, f"for {kind} in {run_dir.journal}")


def count(run_dir, kind):
    return sum(entry["kind"] == kind for entry in journal.read(run_dir.journal).entries)


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment",
    [
        "keeper_started",
        "alert_fired",
        "incident_opened",
        "response_started",
        "verdict",
        "notification_intended",
    ],
)
def test_killed_right_after_any_entry(tmp_path, moment):
    with Webhook() as webhook:
        run_dir = a_hung_run(tmp_path / "r42", webhook)
        first = start(run_dir)
        wait_for(moment, run_dir)
        kill(first)
        before = run_dir.journal.read_bytes()
        second = start(run_dir)
        try:
            wait_for("notification_done", run_dir)
            time.sleep(1.0)
        finally:
            kill(second)
        assert run_dir.journal.read_bytes().startswith(before[: before.rindex(b"\n") + 1])
        assert len(webhook.received) == 1
        for kind in ("incident_opened", "notification_done"):
            assert count(run_dir, kind) == 1, kind
        assert journal.read(run_dir.journal).unreadable == []


@pytest.mark.slow
def test_killed_again_and_again_at_random_moments(tmp_path):
    moments = random.Random(7)
    with Webhook() as webhook:
        run_dir = a_hung_run(tmp_path / "r42", webhook)
        whole = b""
        for _ in range(8):
            keeper = start(run_dir)
            time.sleep(moments.uniform(0.6, 2.2))
            kill(keeper)
            now = run_dir.journal.read_bytes() if run_dir.journal.exists() else b""
            assert now.startswith(whole)
            whole = now[: now.rindex(b"\n") + 1] if b"\n" in now else b""
        last = start(run_dir)
        try:
            wait_for("notification_done", run_dir)
            time.sleep(1.0)
        finally:
            kill(last)
        assert len(webhook.received) == 1
        assert count(run_dir, "incident_opened") == 1


@pytest.mark.slow
def test_a_second_keeper_says_who_holds_the_run(tmp_path):
    with Webhook() as webhook:
        run_dir = a_hung_run(tmp_path / "r42", webhook)
        first = start(run_dir)
        wait_for("keeper_started", run_dir)
        second = start(run_dir)
        said, _ = second.communicate(timeout=120)
        kill(first)
    assert second.returncode == 2
    assert said.count(b"\n") == 1
    assert f"pid {first.pid}".encode() in said


@pytest.mark.slow
def test_until_verdict_takes_the_verdict_of_an_earlier_keeper(tmp_path):
    with Webhook() as webhook:
        run_dir = a_hung_run(tmp_path / "r42", webhook)
        command = [
            sys.executable,
            "-m",
            "train_ledger",
            "watch",
            str(run_dir.path),
            "--no-web",
            "--until-verdict",
        ]
        first = subprocess.run(command, capture_output=True, timeout=180, check=False)
        again = subprocess.run(command, capture_output=True, timeout=180, check=False)
        assert (first.returncode, again.returncode) == (1, 1)
        assert len(webhook.received) == 1


@pytest.mark.slow
def test_ctrl_c_is_heard_while_first_answers_are_waited_for(tmp_path):
    with Webhook() as webhook:
        run_dir = a_hung_run(tmp_path / "r42", webhook)
        run_dir.config_file.write_text('[respond]\non_page = ["dump"]\ndump_wait_s = 60\n')
        keeper = start(run_dir)
        wait_for("response_started", run_dir)
        time.sleep(0.5)
        keeper.send_signal(signal.SIGINT)
        began = time.monotonic()
        keeper.communicate(timeout=120)
        assert time.monotonic() - began < 40
        assert keeper.returncode == 130
