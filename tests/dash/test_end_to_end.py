"""Four runs, one Prometheus, one Alertmanager, a keeper each: who is paged, when, and how often?

Everything is real but the machines: 16 ranks of each run on two hosts, an exporter a host, Debian's
Prometheus and Alertmanager with what is generated for them, and `train-ledger watch`, at the intervals of the
design. Only the floor of a stall is lower, so that the test takes two minutes.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from train_ledger.chaos.servers import child, free_port, missing_servers, paging
from train_ledger.chaos.webhook import Webhook
from train_ledger.config import Alerts, Config
from train_ledger.run_dir import RunDir

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(missing_servers()), reason="prometheus and prometheus-alertmanager are not installed"
    ),
]

FLOOR_S = 20.0
CONFIG = Config(alerts=Alerts(stall_floor_s=FLOOR_S))
STEP_S = 0.5
STEPPING_S = 20.0
"""Twenty steady steps and some scrapes, before anything happens."""

WATCHED_S = 110.0
"""For so long after the last step every message is counted."""

LATEST_S = 60.0
"""Seconds where each process has a core."""

HOSTS = ("n0", "n1")
RANKS_PER_HOST = 8

EXPORT = """
import sys, time
from pathlib import Path
from train_ledger.config import Alerts, Config
from train_ledger.dash.exporter import Exporter
from train_ledger.run_dir import RunDir
run, host, port, floor_s = sys.argv[1:]
config = Config(alerts=Alerts(stall_floor_s=float(floor_s)))
exporter = Exporter(RunDir(Path(run)), config, [host])
with exporter.serve(port=int(port)):
    while True:
        exporter.poll()
        time.sleep(0.5)
"""


KEEPER_SETTINGS = """
[alerts]
stall_floor_s = {floor_s}
[notify]
urls = ["{url}"]
[respond]
on_page = ["diagnose"]
[hardware]
record = false
"""


@dataclass
class Job:
    """A run that steps until told; its exporters are processes, one a host."""

    run_dir: RunDir
    ports: dict[str, int] = field(default_factory=lambda: {host: free_port() for host in HOSTS})
    exporters: dict[str, Any] = field(default_factory=dict)
    step: int = 0
    stands: bool = False
    last_step_t: float = 0.0

    @property
    def name(self) -> str:
        return self.run_dir.path.name

    def start(self, stack: ExitStack) -> None:
        self.run_dir.signals.mkdir(parents=True)
        now = time.time()
        run = {"run": self.name, "world_size": len(HOSTS) * RANKS_PER_HOST, "started": now}
        self.run_dir.run_json.write_text(json.dumps(run))
        for rank in self.ranks:
            self._line(rank, {"t": now, "rank": rank, "event": "run_start", **self.place(rank)})
        for host, port in self.ports.items():
            command = [sys.executable, "-c", EXPORT, str(self.run_dir.path), host, str(port), str(FLOOR_S)]
            log = self.run_dir.path.with_suffix(f".{host}.log")
            self.exporters[host] = stack.enter_context(child(command, log))

    def start_keeper(self, stack: ExitStack, url: str) -> None:
        self.run_dir.config_file.write_text(KEEPER_SETTINGS.format(floor_s=FLOOR_S, url=url))
        command = [sys.executable, "-m", "train_ledger", "watch", str(self.run_dir.path), "--no-web"]
        stack.enter_context(child(command, self.run_dir.path.with_suffix(".watch.log")))

    def is_followed(self) -> bool:
        """Its exporters answer, and its keeper has begun."""
        with suppress(httpx.HTTPError):
            urls = [f"http://127.0.0.1:{port}/metrics" for port in self.ports.values()]
            are_up = all(httpx.get(url, trust_env=False, timeout=60).status_code == 200 for url in urls)
            return are_up and self.run_dir.journal.exists()
        return False

    @property
    def ranks(self) -> range:
        return range(len(HOSTS) * RANKS_PER_HOST)

    def place(self, rank: int) -> dict[str, Any]:
        gpu = rank % RANKS_PER_HOST
        return {
            "world_size": len(HOSTS) * RANKS_PER_HOST,
            "host": HOSTS[rank // RANKS_PER_HOST],
            "local_rank": gpu,
            "gpu": gpu,
            "uuid": f"GPU-{self.name}-{rank:04d}",
            "pci": f"00000000:{0x10 + gpu:02X}:00.0",
            "pid": None,
        }

    def complete_step(self) -> None:
        if self.stands:
            return
        self.step += 1
        self.last_step_t = time.time()
        for rank in self.ranks:
            line = {
                "t": self.last_step_t,
                "rank": rank,
                "step": self.step,
                "loss": 2.0,
                "step_time_s": STEP_S,
            }
            self._line(rank, line)

    def fall_off_the_bus(self, host: str, gpu: int) -> None:
        """The kernel of a host says what became of one of its GPUs."""
        self.run_dir.hardware.mkdir(exist_ok=True)
        pci = f"0000:{0x10 + gpu:02x}:00"
        with (self.run_dir.hardware / f"{host}.kern.log").open("a") as log:
            log.write(
                f"{time.time():.6f} {host} kernel: NVRM: Xid (PCI:{pci}): 79, GPU has fallen off the bus.\n"
            )

    def _line(self, rank: int, line: dict[str, Any]) -> None:
        with self.run_dir.signals_of(rank).open("a") as file:
            file.write(json.dumps(line) + "\n")


@dataclass
class Seen:
    """What the receiver was told of one run."""

    job: Job
    webhook: Webhook
    keepers_webhook: Webhook

    @property
    def keepers_messages(self) -> list[tuple[float, str, str]]:
        """After how many seconds each message of the keeper's came, its title and its body."""
        return [
            (arrival.t - self.job.last_step_t, arrival.body["title"], arrival.body["message"])
            for arrival in self.keepers_webhook.arrivals
            if arrival.body["title"].startswith(f"{self.job.name}: ")
        ]

    @property
    def messages(self) -> list[tuple[float, dict[str, Any]]]:
        return [
            (arrival.t - self.job.last_step_t, arrival.body)
            for arrival in self.webhook.arrivals
            if any(alert["labels"].get("run") == self.job.name for alert in arrival.body["alerts"])
        ]

    def the_page(self) -> tuple[float, dict[str, Any]]:
        """After how many seconds the one message came, and the one alert in it."""
        ((after_s, body),) = self.messages
        assert body["status"] == "firing"
        (alert,) = body["alerts"]
        return after_s, alert


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Seen]]:
    """The four runs, each told of for `WATCHED_S` after its last step."""
    folder = tmp_path_factory.mktemp("end_to_end")
    names = ("faulty", "stalled", "blinded", "healthy")
    jobs = {name: Job(RunDir(folder / name)) for name in names}
    with ExitStack() as stack:
        webhook, keepers_webhook = stack.enter_context(Webhook()), stack.enter_context(Webhook())
        for job in jobs.values():
            job.start(stack)
            job.start_keeper(stack, keepers_webhook.apprise_url)
        targets = [f"127.0.0.1:{port}" for job in jobs.values() for port in job.ports.values()]
        stack.enter_context(paging(folder, CONFIG, targets, webhook.url))
        _step_until(jobs, lambda: all(job.is_followed() for job in jobs.values()))
        _step(jobs, STEPPING_S)
        jobs["faulty"].fall_off_the_bus("n1", 5)
        for name in ("faulty", "stalled", "blinded"):
            jobs[name].stands = True
        blind = threading.Timer(FLOOR_S / 2, jobs["blinded"].exporters["n1"].send_signal, [signal.SIGKILL])
        all_blind = threading.Timer(
            FLOOR_S + 25, jobs["blinded"].exporters["n0"].send_signal, [signal.SIGKILL]
        )
        blind.start()
        all_blind.start()
        _step(jobs, WATCHED_S)
        yield {name: Seen(job, webhook, keepers_webhook) for name, job in jobs.items()}


def _step(jobs: dict[str, Job], for_s: float) -> None:
    deadline = time.monotonic() + for_s
    _step_until(jobs, lambda: time.monotonic() >= deadline)


def _step_until(jobs: dict[str, Job], over: Callable[[], bool]) -> None:
    latest = time.monotonic() + 300.0
    while not over():
        assert time.monotonic() < latest, "not all exporters and keepers came up"
        for job in jobs.values():
            job.complete_step()
        time.sleep(STEP_S)


def test_a_stall_with_an_xid_is_one_page_that_says_where(seen: dict[str, Seen]) -> None:
    after_s, alert = seen["faulty"].the_page()
    assert after_s <= 120
    assert alert["labels"]["alertname"] == "GpuXidError", "the stall that follows is inhibited"
    said = alert["annotations"]["summary"]
    for word in ("faulty", f"step {seen['faulty'].job.step}", "n1", "5", "79", "13"):
        assert word in said, word
    named = {key: alert["labels"][key] for key in ("run", "rank", "host", "gpu", "xid")}
    assert named == {"run": "faulty", "rank": "13", "host": "n1", "gpu": "5", "xid": "79"}


def test_a_stall_alone_is_one_page_soon_after_its_threshold(seen: dict[str, Seen]) -> None:
    after_s, alert = seen["stalled"].the_page()
    assert alert["labels"]["alertname"] == "TrainingStepStalled"
    assert FLOOR_S <= after_s <= FLOOR_S + LATEST_S
    assert f"step {seen['stalled'].job.step}" in alert["annotations"]["summary"]


def test_a_dead_exporter_neither_hides_the_stall_nor_resolves_it(seen: dict[str, Seen]) -> None:
    after_s, alert = seen["blinded"].the_page()
    assert alert["labels"]["alertname"] == "TrainingStepStalled"
    assert FLOOR_S <= after_s <= FLOOR_S + LATEST_S


def test_a_healthy_run_pages_nobody(seen: dict[str, Seen]) -> None:
    assert seen["healthy"].job.step > 100
    assert seen["healthy"].messages == []
    assert seen["healthy"].keepers_messages == []


def test_the_keeper_tells_of_the_fault_once_and_not_of_the_stall_that_follows(seen: dict[str, Seen]) -> None:
    ((after_s, title, body),) = seen["faulty"].keepers_messages
    assert after_s <= LATEST_S
    assert title.startswith("faulty: GpuXidError – ")
    for word in (f"step {seen['faulty'].job.step}", "n1", "gpu 5", "XID 79", "rank 13"):
        assert word in body, word


@pytest.mark.parametrize("name", ["stalled", "blinded"])
def test_the_keeper_tells_of_a_stall_once_and_in_time(seen: dict[str, Seen], name: str) -> None:
    ((after_s, title, _),) = seen[name].keepers_messages
    assert FLOOR_S <= after_s <= FLOOR_S + LATEST_S
    assert title.startswith(f"{name}: TrainingStepStalled")
