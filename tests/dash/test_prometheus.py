"""A real Prometheus scrapes a real exporter and pages for a real stall, even if the exporter dies with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from dash.test_exporter import start, step, write
from train_ledger.chaos.servers import free_port
from train_ledger.config import Alerts
from train_ledger.dash.promql import alerts_yml
from train_ledger.run_dir import RunDir
from waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed"),
]

FLOOR_S = 12.0
"""Longer than any process of this test may wait for a core."""
ALERTS = Alerts(stall_floor_s=FLOOR_S, evaluation_interval_s=1.0)

EXPORT = """
import sys, time
from pathlib import Path
from train_ledger.config import Alerts, Config
from train_ledger.dash.exporter import Exporter
from train_ledger.run_dir import RunDir
exporter = Exporter(RunDir(Path(sys.argv[1])), Config(alerts=Alerts(stall_floor_s=float(sys.argv[3]))))
with exporter.serve(port=int(sys.argv[2])):
    while True:
        exporter.poll()
        time.sleep(0.2)
"""


@contextmanager
def running_process(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def prometheus(folder: Path, exporter_port: int) -> Iterator[httpx.Client]:
    (folder / "alerts.yml").write_text(alerts_yml(ALERTS))
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [
            {"job_name": "train-ledger", "static_configs": [{"targets": [f"127.0.0.1:{exporter_port}"]}]}
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(settings))
    with prometheus_of(folder / "prometheus.yml", folder / "data") as client:
        yield client


@contextmanager
def prometheus_of(config: Path, data: Path) -> Iterator[httpx.Client]:
    """Asks a Prometheus that runs with this configuration, once it is ready."""
    port = free_port()
    command = (
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    with (
        running_process(*command),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client,
    ):
        wait_until_ready(client)
        yield client


def wait_until_ready(client: httpx.Client) -> None:
    """Until then it answers in words that are no JSON."""

    def is_ready() -> bool:
        with suppress(httpx.HTTPError):
            return client.get("/-/ready").status_code == 200
        return False

    wait_until(is_ready, 120.0, "for Prometheus")


def firing(client: httpx.Client) -> dict[str, dict[str, Any]]:
    try:
        alerts = client.get("/api/v1/alerts").json()["data"]["alerts"]
    except httpx.HTTPError:
        return {}
    return {each["labels"]["alertname"]: each for each in alerts if each["state"] == "firing"}


def test_a_stall_is_paged_in_time_and_stays_paged_when_the_exporter_is_killed(tmp_path: Path) -> None:
    run_dir, port = RunDir(tmp_path / "r42"), free_port()
    began = time.time()
    write(run_dir, 0, start(began, 0, world_size=1))
    command = (sys.executable, "-c", EXPORT, str(run_dir.path), str(port), str(FLOOR_S))
    with running_process(*command) as exporter, prometheus(tmp_path, port) as client:
        for number in range(1, 60):
            write(run_dir, 0, step(time.time(), 0, number, loss=1.0, step_time_s=0.1))
            assert not firing(client)
            time.sleep(0.1)
        stopped = time.time()
        while "TrainingStepStalled" not in firing(client):
            assert time.time() - stopped < FLOOR_S + 60
            time.sleep(0.1)
        noticed_s = time.time() - stopped
        assert FLOOR_S - 0.5 < noticed_s < FLOOR_S + 30, "the threshold, a look, a scrape and an evaluation"
        stall = firing(client)["TrainingStepStalled"]
        assert stall["labels"] == {"alertname": "TrainingStepStalled", "level": "page", "run": "r42"}
        assert stall["annotations"]["summary"].startswith("r42: no step completed for ")
        exporter.kill()
        for _ in range(15):
            time.sleep(0.3)
            assert "TrainingStepStalled" in firing(client), "a dead exporter hides no hang"
        health = client.get("/api/v1/rules").json()["data"]["groups"][0]["rules"]
        assert {rule["name"]: rule.get("lastError") for rule in health if rule["health"] != "ok"} == {}
