"""How do a Prometheus and an Alertmanager of our own run for a while, with what we generate for them?

On loopback, on free ports, in a folder of their own; ended, and waited for, when the context ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from train_ledger.chaos import tether
from train_ledger.config import Config
from train_ledger.dash.alertmanager import ALERTMANAGER_ARGUMENTS
from train_ledger.dash.deploy import Settings, Target, files_of

__all__ = [
    "SERVERS",
    "ServerError",
    "child",
    "free_port",
    "missing_servers",
    "paging",
    "until",
    "where_it_ended",
]

SERVERS: Mapping[str, tuple[str, ...]] = {
    "prometheus": ("prometheus",),
    "alertmanager": ("prometheus-alertmanager", "alertmanager"),
}
"""Each server, and by which names its program is known: Debian's own first."""

_OURS = "/train-ledger.json"
_READY_WITHIN_S = 60.0
_END_GRACE_S = 5.0


class ServerError(Exception):
    """A server cannot be had; the text says which, and why."""


def missing_servers() -> tuple[str, ...]:
    """Which of the two are not installed."""
    return tuple(name for name in SERVERS if _program(name) is None)


def _program(name: str) -> str | None:
    return next((found for each in SERVERS[name] if (found := shutil.which(each))), None)


def free_port() -> int:
    """A port of loopback that nobody has at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


@contextlib.contextmanager
def paging(folder: Path, config: Config, targets: Sequence[str], receiver: str) -> Iterator[str]:
    """Prometheus scrapes the `targets` ("host:port"), and what it finds reaches `receiver` by Alertmanager.

    Rules, routes and intervals are those that `train-ledger deploy` writes for `config`. Yields Prometheus'
    address once both are ready. Raises ServerError where one is not installed or does not come up.
    """
    alertmanager_port, prometheus_port = free_port(), free_port()
    ports = {"127.0.0.1:9093": alertmanager_port, "127.0.0.1:9090": prometheus_port}
    _write(folder, Settings(config=config, targets=tuple(map(_target, targets)), webhook=receiver), ports)
    alertmanager = (
        f"--config.file={folder}/alertmanager/alertmanager.yml",
        f"--storage.path={folder}/alertmanager/data",
        f"--web.listen-address=127.0.0.1:{alertmanager_port}",
        *ALERTMANAGER_ARGUMENTS,
    )
    prometheus = (
        f"--config.file={folder}/prometheus/prometheus.yml",
        f"--storage.tsdb.path={folder}/prometheus/data",
        f"--web.listen-address=127.0.0.1:{prometheus_port}",
    )
    with (
        _server("alertmanager", alertmanager, folder, alertmanager_port),
        _server("prometheus", prometheus, folder, prometheus_port) as url,
    ):
        yield url


def _target(address: str) -> Target:
    host, _, port = address.rpartition(":")
    return Target(host, int(port))


def _write(folder: Path, settings: Settings, ports: Mapping[str, int]) -> None:
    """What is deployed, with the servers at ports of our own, and without the machine's other exporters."""
    for file in files_of(settings, ("prometheus", "alertmanager")):
        if file.path.startswith("prometheus/targets/") and not file.path.endswith(_OURS):
            continue
        text = file.text
        for address, port in ports.items():
            text = text.replace(address, f"127.0.0.1:{port}")
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=file.mode)
        path.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _server(name: str, arguments: Sequence[str], folder: Path, port: int) -> Iterator[str]:
    program = _program(name)
    if program is None:
        raise ServerError(f"{name} is not installed; install it, or drill without it (--no-prometheus)")
    url = f"http://127.0.0.1:{port}"
    log = folder / f"{name}.log"
    with child([program, *arguments], log) as process:
        if not until(lambda: process.poll() is not None or _is_ready(url), _READY_WITHIN_S):
            raise ServerError(f"{name} was not ready within {_READY_WITHIN_S:.0f} s; it says: {_last(log)}")
        if process.poll() is not None:
            raise ServerError(f"{name} ended with status {process.returncode}; it says: {_last(log)}")
        yield url


def _is_ready(url: str) -> bool:
    return _asked(f"{url}/-/ready") is not None


def _asked(url: str) -> bytes | None:
    """What a server of ours answers; None where it does not."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2.0) as answer:
            return bytes(answer.read()) if answer.status == 200 else None
    except (urllib.error.URLError, OSError, ValueError):
        return None


def where_it_ended(prometheus: str, alert: str) -> str:
    """How far an alert came that nobody was told of, in words, by what Prometheus itself says."""
    targets = _data(f"{prometheus}/api/v1/targets").get("activeTargets", [])
    if down := [it for it in targets if it.get("health") != "up"]:
        return f"Prometheus cannot scrape {down[0].get('scrapeUrl')}: {down[0].get('lastError')}"
    groups = _data(f"{prometheus}/api/v1/rules").get("groups", [])
    rules = [rule for group in groups for rule in group["rules"]]
    if bad := [rule for rule in rules if rule.get("lastError")]:
        return f"the rule {bad[0]['name']} fails: {bad[0]['lastError']}"
    states = {rule["name"]: rule.get("state") for rule in rules}
    if states.get(alert) != "firing":
        return f"{alert} is {states.get(alert, 'no rule')} in Prometheus"
    return f"{alert} fires in Prometheus; Alertmanager told nobody"


def _data(url: str) -> dict[str, Any]:
    try:
        return dict(json.loads(_asked(url) or b"{}").get("data") or {})
    except ValueError:
        return {}


def _last(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[-1] if lines else "nothing"


def until(holds: Callable[[], bool], within_s: float, look_s: float = 0.1) -> bool:
    """Wait until something holds; False where it did not in time."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() >= deadline:
            return False
        time.sleep(look_s)
    return True


@contextlib.contextmanager
def child(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of a session of its own, so that Ctrl-C reaches us alone; ended with all that it started.

    It ends, too, where we are killed.
    """
    tethered = [sys.executable, "-I", tether.__file__, str(os.getpid()), *command]
    with log.open("ab") as said:
        process = subprocess.Popen(
            tethered,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=None if environment is None else {**os.environ, **environment},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_GRACE_S)
            return
