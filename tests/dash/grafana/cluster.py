"""A real Prometheus with what `deploy` writes, real exporters of a rich run, stand-ins for the hardware's."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import httpx

from dash.grafana import rich_run
from dash.test_prometheus import prometheus_of
from train_ledger.chaos.servers import free_port
from train_ledger.config import Alerts, Config
from train_ledger.dash.deploy import Settings, files_of, put
from train_ledger.dash.exporter import Exporter
from train_ledger.dash.exposition import Exposition
from train_ledger.dash.scrapes import serving
from train_ledger.run_dir import RunDir


@contextmanager
def cluster(folder: Path) -> Iterator[httpx.Client]:
    """Asks Prometheus, while the run goes on."""
    run_dir = RunDir(folder / "r42")
    step = rich_run.write_history(run_dir, time.time())
    exporters = [Exporter(run_dir, Config(), [host]) for host in rich_run.HOSTS]
    whole, exposition = Exporter(run_dir, Config()), Exposition(Config())

    def of_keeper() -> bytes:
        return exposition.text_of_run(whole.state).encode()

    with ExitStack() as stack:
        told = {
            "train-ledger": [
                *(stack.enter_context(exporter.serve(port=0)) for exporter in exporters),
                stack.enter_context(_fixed(rich_run.left_behind_text(run_dir.path.name))),
            ],
            "dcgm-exporter": [
                stack.enter_context(_fixed(rich_run.dcgm_text(*how)))
                for how in zip(rich_run.HOSTS, ("Hostname", "hostname"), strict=True)
            ],
            "remote": [stack.enter_context(_fixed(rich_run.dcgm_text("localhost")))],
            "node-exporter": [stack.enter_context(_fixed(rich_run.node_text()))],
            "keeper": [stack.enter_context(serving(of_keeper, "127.0.0.1", 0))],
        }
        stack.enter_context(_going_on(run_dir, step, [*exporters, whole]))
        yield stack.enter_context(_prometheus(folder / "deployed", told))


def _fixed(text: str) -> AbstractContextManager[str]:
    return serving(text.encode, "127.0.0.1", 0)


_ADDRESSES = {"node-exporter": f"{rich_run.HOSTS[0]}:9100"}
"""By which address a target is known in a cluster; all of these are on this machine."""


def _entry(urls: list[str], address: str | None) -> dict[str, object]:
    labels = {"instance": address} if address else {}
    return {"targets": [url.removeprefix("http://") for url in urls], "labels": labels}


@contextmanager
def _prometheus(folder: Path, told: dict[str, list[str]]) -> Iterator[httpx.Client]:
    settings = Settings(config=Config(alerts=Alerts(effective_from_age_s=60.0)))  # of a run so young
    put(folder, files_of(settings, ["prometheus"]))
    for kind in ("train-ledger", "keeper", "dcgm-exporter", "node-exporter"):
        entries = [_entry(told[kind], _ADDRESSES.get(kind))]
        if kind == "dcgm-exporter":
            entries.append(_entry(told["remote"], "node007:9400"))
        (folder / "prometheus" / "targets" / f"{kind}.json").write_text(json.dumps(entries))
    place = folder / "prometheus" / "prometheus.yml"
    text = place.read_text().replace("5s", "1s")
    place.write_text(text.replace("127.0.0.1:9093", f"127.0.0.1:{free_port()}"))
    with prometheus_of(place, folder / "data") as client:
        yield client


@contextmanager
def _going_on(run_dir: RunDir, step: int, exporters: list[Exporter]) -> Iterator[None]:
    """Every rank completes a step now and then, and a checkpoint fails; the exporters look."""
    ended, number = threading.Event(), [step]

    def one_step() -> None:
        number[0] += 1
        now = time.time()
        for rank, _, _ in rich_run.ranks():
            rich_run.append(run_dir, rank, rich_run.step_line(now, rank, number[0]))
            if number[0] % 10 == 0:
                failed = {"t": now, "step": number[0], "rank": rank, "attempt": 1, "event": "ckpt_failed"}
                rich_run.append(run_dir, rank, {**failed, "error": "no space left"})
        for exporter in exporters:
            exporter.poll()

    thread = threading.Thread(target=_until, args=(ended, one_step), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for exporter in exporters:
            exporter.close()


def _until(ended: threading.Event, act: Callable[[], None]) -> None:
    while not ended.wait(0.5):
        act()
