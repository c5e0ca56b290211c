"""A real Prometheus scrapes real exporters of four runs; each is diagnosed by it alone."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from dash.test_prometheus import prometheus_of
from hang.recorder import Job as Recorded
from train_ledger.cli import app
from train_ledger.config import Alerts, Config
from train_ledger.dash.exporter import Exporter
from train_ledger.dash.scrapes import serving
from train_ledger.ops.prometheus import FollowedRun, diagnose_by_prometheus
from train_ledger.run_dir import RunDir
from train_ledger.sources.prometheus import PrometheusError
from waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed"),
]

FLOOR_S = 12.0
"""Longer than a thread of this process may wait for a core: a run that goes on is never one that stands."""
CONFIG = Config(alerts=Alerts(stall_floor_s=FLOOR_S, process_gone_s=FLOOR_S))
STEP_S, STEPS = 0.4, 25
HOSTS = ("n0", "n1")
PER_HOST = 4


@dataclass
class Job:
    """Eight ranks of a run that step until they stand; an exporter a host."""

    run_dir: RunDir
    exporters: list[Exporter] = field(default_factory=list)
    step: int = 0
    stands: bool = False
    late: tuple[int, ...] = ()
    dead: tuple[int, ...] = ()
    own_s: dict[int, float] = field(default_factory=dict)

    @property
    def ranks(self) -> range:
        return range(len(HOSTS) * PER_HOST)

    def start(self) -> None:
        self.run_dir.signals.mkdir(parents=True)
        name, now = self.run_dir.path.name, time.time()
        self.run_dir.run_json.write_text(json.dumps({"run": name, "world_size": 8, "started": now}))
        for rank in self.ranks:
            gpu = rank % PER_HOST
            place = {"host": HOSTS[rank // PER_HOST], "gpu": gpu, "uuid": f"GPU-{name}-{rank}"}
            start = {"t": now, "event": "run_start", "world_size": 8, "pci": f"0000:{0x10 + gpu:02x}:00.0"}
            self.write(rank, {**start, **place})
        self.exporters = [Exporter(self.run_dir, CONFIG, [host]) for host in HOSTS]

    def write(self, rank: int, line: dict[str, Any]) -> None:
        with self.run_dir.signals_of(rank).open("a") as file:
            file.write(json.dumps({"rank": rank, **line}) + "\n")

    def complete_step(self) -> None:
        if self.stands:
            return
        self.step += 1
        for rank in self.ranks:
            if rank not in self.dead:
                own = self.own_s.get(rank, 0.2)
                parts = {"compute_s": own, "comm_wait_s": 0.35 - own, "data_wait_s": 0.001}
                step = {"t": time.time(), "step": self.step, "step_time_s": STEP_S, "loss": 2.0, **parts}
                self.write(rank, step)

    def stand(self) -> None:
        """All but the late ones complete one step more."""
        self.stands = True
        for rank in set(self.ranks) - set(self.late) - set(self.dead):
            self.write(rank, {"t": time.time(), "step": self.step + 1, "step_time_s": STEP_S, "loss": 2.0})

    def fall_off(self, host: str, gpu: int) -> None:
        self.run_dir.hardware.mkdir(exist_ok=True)
        said = f"kernel: NVRM: Xid (PCI:0000:{0x10 + gpu:02x}:00): 79, GPU has fallen off the bus."
        (self.run_dir.hardware / f"{host}.kern.log").write_text(f"{time.time():.6f} {host} {said}\n")


NAMES = ("healthy", "late", "faulty", "nan", "blinded")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where Prometheus answers, some seconds after four of the five runs came to a stand."""
    folder = tmp_path_factory.mktemp("live")
    jobs = {name: Job(RunDir(folder / name)) for name in NAMES}
    jobs["late"].late = (6,)
    with ExitStack() as stack:
        servers: dict[tuple[str, str], ExitStack] = {}
        targets = []
        for name, job in jobs.items():
            job.start()
            for host, exporter in zip(HOSTS, job.exporters, strict=True):
                servers[name, host] = ExitStack()
                stack.callback(servers[name, host].close)
                targets.append(servers[name, host].enter_context(exporter.serve(port=0)))
                stack.callback(exporter.close)
        targets.append(stack.enter_context(serving(_dcgm, "127.0.0.1", 0)))
        stack.enter_context(_going_on(jobs))
        client = stack.enter_context(prometheus_of(_configured(folder, targets), folder / "data"))
        wait_until(lambda: _has_come(client), 180.0, "for the steps of all runs in Prometheus")
        jobs["faulty"].fall_off("n1", 2)
        jobs["nan"].write(3, {"t": time.time(), "step": jobs["nan"].step + 1, "loss": "NaN"})
        servers["blinded", "n1"].close()
        for name in ("late", "faulty", "blinded"):
            jobs[name].stand()
        for name in ("late", "faulty", "blinded"):
            followed = FollowedRun(str(client.base_url), CONFIG, name)
            wait_until(lambda it=followed: it.state().state == "stalled", 180.0, f"for the stall of {name}")
        yield str(client.base_url)


def _has_come(client: httpx.Client) -> bool:
    """Every run has taken its steps, and Prometheus knows of them all."""
    asked = {"query": f"count(min by (run) (train_step) >= {STEPS})"}
    found = client.get("/api/v1/query", params=asked).json()["data"]["result"]
    return [it["value"][1] for it in found] == [str(len(NAMES))]


def _dcgm() -> bytes:
    """Of every GPU a clock, as dcgm-exporter tells it."""
    labels = [
        f'gpu="{rank % PER_HOST}",UUID="GPU-{name}-{rank}",Hostname="{HOSTS[rank // PER_HOST]}"'
        for name in NAMES
        for rank in range(8)
    ]
    return "".join(f"DCGM_FI_DEV_SM_CLOCK{{{label}}} 1980\n" for label in labels).encode()


def _configured(folder: Path, urls: list[str]) -> Path:
    targets = [it.removeprefix("http://").removesuffix("/metrics") for it in urls]
    job = {"job_name": "train-ledger", "static_configs": [{"targets": targets}]}
    settings = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": [job]}
    path = folder / "prometheus.yml"
    path.write_text(json.dumps(settings))
    return path


class _going_on:  # noqa: N801
    """Every run steps, and its exporters look, until this ends."""

    def __init__(self, jobs: dict[str, Job]) -> None:
        self._jobs, self._ended = jobs, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._ended.wait(STEP_S):
            for job in self._jobs.values():
                job.complete_step()
                for exporter in job.exporters:
                    exporter.poll()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def test_a_healthy_run_is_well(url: str) -> None:
    found = diagnose_by_prometheus(url, CONFIG, name="healthy")
    assert (found.cause, found.ranks, found.next) == ("none", (), ())
    assert any("stacks and Flight Recorder dumps" in line for line in found.not_observed)


def test_the_state_is_that_of_the_files(url: str) -> None:
    state = FollowedRun(url, CONFIG, "late").state()
    assert (len(state.ranks), state.state, state.attempt) == (8, "stalled", 0)
    six = state.ranks[6]
    assert (six.host, six.gpu, six.uuid, six.step) == ("n1", 2, "GPU-late-6", state.step - 1)
    assert state.p50_step_time_s == pytest.approx(STEP_S, rel=0.3)
    assert FLOOR_S <= state.stalled_for_s < 1800.0


def test_a_stall_says_who_is_behind_and_accuses_nobody(url: str) -> None:
    found = diagnose_by_prometheus(url, CONFIG, name="late")
    assert (found.state, found.cause, found.ranks) == ("stalled", "unknown", ())
    assert any("is not completed by rank 6" in line for line in found.evidence)
    assert found.next[0].command == "train-ledger stacks --launcher ssh --hosts n1"
    assert found.impact is not None
    assert found.impact.wall_s >= FLOOR_S


def test_a_stall_with_an_xid_is_the_hardwares(url: str) -> None:
    found = diagnose_by_prometheus(url, CONFIG, name="faulty")
    assert (found.cause, found.ranks, found.hosts, found.gpus) == (
        "hardware.xid",
        (6,),
        ("n1",),
        ("GPU-faulty-6",),
    )
    assert found.confidence == "high"
    assert any("nvidia-smi" in it.command for it in found.next)


def test_a_loss_that_is_not_finite_names_its_rank(url: str) -> None:
    found = diagnose_by_prometheus(url, CONFIG, name="nan")
    assert (found.cause, found.ranks, found.hosts) == ("numeric.nan", (3,), ("n0",))


def test_an_exporter_that_died_hides_no_stall_and_is_named(url: str) -> None:
    found = diagnose_by_prometheus(url, CONFIG, name="blinded")
    assert found.state == "stalled"
    assert any("Prometheus scrapes it no longer" in line for line in found.not_observed)


def test_a_moment_in_the_past(url: str) -> None:
    found = diagnose_by_prometheus(url, CONFIG, name="late", at=time.time() - 8.0)
    assert found.state in ("running", "stalled")


def test_no_such_run_lists_those_that_there_are(url: str) -> None:
    with pytest.raises(PrometheusError, match="it knows blinded, faulty, healthy, late, nan"):
        diagnose_by_prometheus(url, CONFIG, name="nobody")
    with pytest.raises(PrometheusError, match="several runs; name one by --run: blinded, faulty"):
        diagnose_by_prometheus(url, CONFIG)


def test_the_command_line(url: str) -> None:
    told = CliRunner().invoke(app, ["diagnose", "--prometheus", url, "--run", "faulty", "--json"])
    answer = json.loads(told.stdout)
    assert (answer["schema"], answer["cause"], answer["ranks"], told.exit_code) == (1, "hardware.xid", [6], 1)
    secret = url.replace("http://", "http://me:secret@")
    told = CliRunner().invoke(app, ["diagnose", "--prometheus", secret, "--run", "nobody"])
    assert told.exit_code == 2
    assert "secret" not in told.stdout + told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_a_run_directory_beside_it_tells_what_prometheus_cannot(url: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"run": "late"}')
    found = diagnose_by_prometheus(url, CONFIG, run_dir=RunDir(tmp_path))
    assert found.state == "stalled"
    assert any(str(tmp_path) in it.command for it in found.next)


def test_dumps_that_lie_beside_it_name_who_did_not_come(url: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"run": "late"}')
    job = Recorded(8)
    job.issue(range(8), done=True)
    job.issue([rank for rank in range(8) if rank != 6])
    job.write(tmp_path / "comm_traces")
    found = diagnose_by_prometheus(url, CONFIG, run_dir=RunDir(tmp_path))
    assert (found.cause, found.ranks, found.hosts, found.gpus) == (
        "hang.rank_missing",
        (6,),
        ("n1",),
        ("GPU-late-6",),
    )


def test_a_keeper_follows_it_to_the_verdict(url: str, tmp_path: Path) -> None:
    (tmp_path / "train-ledger.toml").write_text("[alerts]\nstall_floor_s = 4.0\n[hardware]\nrecord = false\n")
    asked = ["--prometheus", url, "--run", "faulty", "--no-web", "--until-verdict"]
    told = CliRunner().invoke(app, ["watch", str(tmp_path), *asked])
    assert told.exit_code == 1, told.output
    assert "page alert GpuXidError" in told.stdout
    assert "verdict: hardware.xid" in told.stdout
