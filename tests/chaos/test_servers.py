"""What of our own is started is up, is ended, and says where an alert was lost."""

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from train_ledger.chaos import servers
from train_ledger.config import Config

UP = {"activeTargets": [{"health": "up"}]}
DOWN = {
    "activeTargets": [{"health": "down", "scrapeUrl": "http://127.0.0.1:1/metrics", "lastError": "refused"}]
}


def rules(state, error=""):
    return {"groups": [{"rules": [{"name": "TrainingStepStalled", "state": state, "lastError": error}]}]}


@contextmanager
def a_prometheus(**answers):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"data": answers[self.path.rpartition("/")[2]]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("targets", "found", "said"),
    [
        (DOWN, rules("firing"), "cannot scrape http://127.0.0.1:1/metrics: refused"),
        (UP, rules("inactive", "bad matching"), "the rule TrainingStepStalled fails: bad matching"),
        (UP, rules("inactive"), "TrainingStepStalled is inactive in Prometheus"),
        (UP, {"groups": []}, "TrainingStepStalled is no rule in Prometheus"),
        (UP, rules("firing"), "Alertmanager told nobody"),
    ],
)
def test_it_is_said_how_far_an_alert_came_of_which_nobody_was_told(targets, found, said):
    with a_prometheus(targets=targets, rules=found) as url:
        assert said in servers.where_it_ended(url, "TrainingStepStalled")


def test_a_prometheus_that_is_gone_is_no_traceback():
    assert "no rule" in servers.where_it_ended("http://127.0.0.1:1", "TrainingStepStalled")


def test_a_child_is_ended_with_all_that_it_started(tmp_path):
    inner = (
        "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    )
    log = tmp_path / "child.log"
    with servers.child([sys.executable, "-c", inner], log) as it:
        assert servers.until(lambda: log.read_text().endswith("\n"), 90)
        grandchild = Path(f"/proc/{log.read_text().strip()}/cmdline")
        assert it.poll() is None
        assert b"sleep" in grandchild.read_bytes()
    assert it.poll() is not None
    assert servers.until(lambda: not grandchild.exists() or not grandchild.read_bytes(), 60)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own word")
def test_a_child_ends_with_a_drill_that_is_killed(tmp_path):
    sleeper = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    drill = (
        "import sys, time\nfrom pathlib import Path\nfrom train_ledger.chaos import servers\n"
        f"with servers.child([sys.executable, '-c', {sleeper!r}], Path({str(tmp_path / 'log')!r})):\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", drill]) as process:
        log = tmp_path / "log"
        assert servers.until(lambda: log.exists() and log.read_text().strip().isdecimal(), 90)
        pid = int(log.read_text())
        process.kill()
    assert servers.until(lambda: not Path(f"/proc/{pid}").exists(), 60)


def test_a_server_that_ends_at_once_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "_program", lambda name: "false")
    with (
        pytest.raises(servers.ServerError, match=r"alertmanager ended with status 1; it says: nothing"),
        servers.paging(tmp_path, Config(), ["127.0.0.1:1"], "http://127.0.0.1:1/page"),
    ):
        pass


def test_one_that_is_not_installed_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert servers.missing_servers() == ("prometheus", "alertmanager")
    with (
        pytest.raises(servers.ServerError, match="alertmanager is not installed"),
        servers.paging(tmp_path, Config(), [], "http://127.0.0.1:1/page"),
    ):
        pass
