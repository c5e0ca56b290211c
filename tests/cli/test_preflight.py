"""`train-ledger preflight` as it is typed."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from train_ledger.chaos.preflight import tries
from train_ledger.cli import app
from train_ledger.ops.preflight import HangDrilled, Launched

RUN_JSON = {"contacts": {"on call": "x"}, "restart_command": "sbatch t.sh", "exclude_file": "/etc/excluded"}


def run(*words):
    return CliRunner().invoke(app, ["preflight", *map(str, words)])


@pytest.fixture
def run_dir(tmp_path):
    """A run that has not begun, of which everything is said."""
    folder = tmp_path / "r42"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(RUN_JSON))
    (folder / "train-ledger.toml").write_text('[notify]\nurls = ["json://127.0.0.1:9/page"]\n')
    return folder


def test_all_that_could_be_checked_holds(run_dir):
    answer = run(run_dir, "--only", "roster", "--json")
    told = json.loads(answer.stdout)
    assert (answer.exit_code, told["schema"], told["verdict"]) == (0, 1, "pass")
    assert [item["key"] for item in told["items"]] == ["roster"]
    assert len(told["not_asked"]) == 12


def test_something_does_not_hold(run_dir):
    (run_dir / "run.json").write_text("{}")
    answer = run(run_dir, "--only", "13")
    assert answer.exit_code == 1
    assert answer.stdout.startswith("not ready: 1 of 1 item fails (runbook and duty roster)")
    assert "contacts in run.json" in answer.stdout


def test_nothing_could_be_checked():
    assert run("--only", "memory,roster").exit_code == 3


def test_a_run_that_is_not_there_is_made_and_a_page_written(tmp_path):
    answer = run(tmp_path / "new", "--only", "roster", "--output", tmp_path / "report.html")
    assert answer.exit_code == 1
    assert "Content-Security-Policy" in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "new" / "preflight" / "report.json").read_text())["verdict"] == "fail"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "gpus"], "is no item of the list"),
        (["--only", "1", "--skip", "gpu"], "leave no item"),
        (["/no/such/folder/r42"], "there is no folder /no/such/folder"),
        (["--as-rank"], "takes a RUN"),
        (["--ring", "--only", "roster"], "nobody can be told"),
    ],
)
def test_what_cannot_be_done_is_one_line(words, told, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    answer = run(*words)
    assert answer.exit_code == 2
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_without_torch_what_takes_a_job_is_said_and_the_rest_is_checked(run_dir, monkeypatch):
    monkeypatch.setattr(tries.importlib.util, "find_spec", lambda name: None)
    told = json.loads(run(run_dir, "--only", "gpu,faults,recorder,roster", "--json").stdout)
    verdicts = {item["key"]: item["verdict"] for item in told["items"]}
    assert verdicts == dict.fromkeys(("gpu", "faults", "recorder"), "not_possible") | {"roster": "pass"}
    assert "torch is not installed" in told["items"][0]["checks"][0]["said"]


def test_a_job_that_does_not_run_fails_its_items_and_leaves_its_logs(run_dir, monkeypatch):
    """And the reason stands in each."""

    def broken(folder, ranks, stages, load_s):
        logs = folder / "logs" / "0"
        logs.mkdir(parents=True)
        (logs / "stderr.log").write_text("No space left on device")
        return Launched(False, said="No space left on device")

    class Drill:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def result(self):
            return HangDrilled(why_not="no space left")

    monkeypatch.setattr(tries, "run_job", broken)
    monkeypatch.setattr(tries.drills, "hang_drill", lambda *_: Drill())
    words = "gpu,bandwidth,clocks,mfu,restore,layout,faults,recorder"
    told = json.loads(run(run_dir, "--only", words, "--json").stdout)
    verdicts = {item["key"]: item["verdict"] for item in told["items"]}
    assert verdicts.pop("recorder") == "not_possible"
    assert set(verdicts.values()) == {"fail"}
    assert all("No space left" in item["checks"][0]["said"] for item in told["items"][:-1])
    assert (run_dir / "preflight" / "job_logs" / "0" / "stderr.log").exists()
    assert not list((run_dir / "preflight").glob("work-*"))


def test_what_a_cluster_measured_is_taken_and_nothing_is_measured_anew(run_dir, monkeypatch):
    measured = run_dir / "preflight" / "measured"
    measured.mkdir(parents=True)
    for rank in range(4):
        link = {"pair": [f"n{rank}", f"n{rank + 1}"], "op": "all_reduce", "bytes_per_s": 380e9, "right": True}
        figures = {
            "environment": {"host": f"n{rank}", "ranks": 4, "backend": "nccl", "device": "cuda"},
            "bandwidth": [link] if rank < 3 else [],
            "nic_bytes_per_s": 400e9,
        }
        (measured / f"rank_{rank:05d}.json").write_text(json.dumps(figures))
    monkeypatch.setattr(tries, "run_job", lambda *_: pytest.fail("a job was started"))
    told = json.loads(run(run_dir, "--only", "bandwidth", "--json").stdout)
    assert [it["verdict"] for it in told["items"][0]["checks"]] == ["pass", "pass", "pass"]
    assert "4 ranks over nccl on 4 hosts" in told["where"]
    assert "measured together at" in told["where"]


def test_a_link_to_nowhere_is_no_run_that_could_be_made(tmp_path):
    (tmp_path / "r42").symlink_to(tmp_path / "gone")
    answer = run(tmp_path / "r42", "--only", "roster")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == f"train-ledger: {tmp_path}/r42: there is no such run directory; check the path\n"
