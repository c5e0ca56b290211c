"""`train-ledger deploy` writes a folder, and says what it wrote."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dash.grafana import rich_run
from train_ledger.cli import app
from train_ledger.config import Config
from train_ledger.dash.exporter import Exporter
from train_ledger.run_dir import RunDir

pytest.importorskip("grafana_foundation_sdk")


def deploy(*arguments: str, status: int = 0) -> str:
    answer = CliRunner().invoke(app, ["deploy", *arguments])
    assert answer.exit_code == status, answer.output
    return answer.output


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "r42"
    folder.mkdir()
    ranks = [{"rank": rank, "host": f"node00{rank}"} for rank in range(2)]
    (folder / "ranks.jsonl").write_text("".join(json.dumps(rank) + "\n" for rank in ranks))
    (folder / "train-ledger.toml").write_text("[alerts]\nevaluation_interval_s = 15\n")
    return folder


def test_the_files_are_listed_with_where_they_go(tmp_path: Path) -> None:
    said = json.loads(deploy("--out", str(tmp_path / "out"), "--json"))
    assert said["schema"] == 1
    for file in said["files"]:
        assert Path(file["path"]).is_file()
        assert file["state"] == "written"
        assert file["goes"]
    again = json.loads(deploy("--out", str(tmp_path / "out"), "--json"))
    assert {file["state"] for file in again["files"]} == {"as it was"}


def test_a_run_gives_its_thresholds_and_hosts(tmp_path: Path, run: Path) -> None:
    deploy("--out", str(tmp_path / "out"), "--run", str(run), "--only", "prometheus,systemd")
    assert "evaluation_interval: 15s" in (tmp_path / "out/prometheus/prometheus.yml").read_text()
    targets = json.loads((tmp_path / "out/prometheus/targets/train-ledger.json").read_text())
    assert targets == [{"targets": ["node000:9466", "node001:9466"]}]
    unit = (tmp_path / "out/systemd/train-ledger-export@.service").read_text()
    assert f"systemd-escape --path {run}" in unit
    assert "TRAIN_LEDGER_ADDRESS=0.0.0.0" in unit


def test_targets_that_are_named_go_before_the_run_s(tmp_path: Path, run: Path) -> None:
    named = ("--targets", "gpu7:9500")
    deploy("--out", str(tmp_path / "out"), "--run", str(run), *named, "--only", "prometheus")
    targets = json.loads((tmp_path / "out/prometheus/targets/train-ledger.json").read_text())
    assert targets == [{"targets": ["gpu7:9500"]}]


def test_what_somebody_changed_is_named_and_left(tmp_path: Path) -> None:
    out = tmp_path / "out"
    deploy("--out", str(out), "--only", "dcgm")
    (out / "dcgm/dcgm-counters.csv").write_text("mine\n")
    said = deploy("--out", str(out), "--only", "dcgm", status=2)
    assert said.count("\n") == 1
    assert "dcgm/dcgm-counters.csv; --force overwrites them" in said
    assert (out / "dcgm/dcgm-counters.csv").read_text() == "mine\n"
    deploy("--out", str(out), "--only", "dcgm", "--force")
    assert (out / "dcgm/dcgm-counters.csv").read_text() != "mine\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--only", "nagios"),
        ("--targets", "a b"),
        ("--webhook", "pager"),
        ("--runbook-url", "javascript:alert(1)"),
        ("--namespace", "Not_One"),
        ("--run", "/no/such/run"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    said = deploy("--out", str(tmp_path / "out"), *arguments, status=2)
    assert said.startswith("train-ledger: ")
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    said = deploy("--out", str(tmp_path / "out"), "--only", "dcgm", status=2)
    assert said.count("\n") == 1


def test_nothing_of_it_is_missing_where_everything_is_exported(tmp_path: Path) -> None:
    """By `lint`: no alert that can never fire, no panel that shows nothing."""
    run_dir, now = RunDir(tmp_path / "r42"), time.time()
    rich_run.write_history(run_dir, now)
    exporter = Exporter(run_dir, Config(), clock=lambda: now)
    while not exporter.poll():
        pass
    scrapes = {
        "sidecar": exporter.metrics() or "",
        "dcgm": rich_run.dcgm_text("node000"),
        "node": rich_run.node_text(),
    }
    exporter.close()
    for name, text in scrapes.items():
        (tmp_path / name).write_text(text)
    deploy("--out", str(tmp_path / "out"))
    files = [word for name in scrapes for word in ("--file", str(tmp_path / name))]
    answer = CliRunner().invoke(app, ["lint", str(tmp_path / "out"), *files])
    assert answer.exit_code == 0, answer.output
