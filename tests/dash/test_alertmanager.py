"""Alertmanager takes the configuration, and makes one page of one incident."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from train_ledger.chaos.servers import free_port
from train_ledger.chaos.webhook import Webhook
from train_ledger.config import Alerts, Config, Notify
from train_ledger.dash.alertmanager import ALERTMANAGER_ARGUMENTS, alertmanager_yml
from train_ledger.dash.rules import INHIBITIONS, RULES
from waiting import wait_until

needs_amtool = pytest.mark.skipif(shutil.which("amtool") is None, reason="amtool is not installed")
needs_alertmanager = pytest.mark.skipif(
    shutil.which("prometheus-alertmanager") is None, reason="prometheus-alertmanager is not installed"
)


def amtool(*arguments: str) -> str:
    done = subprocess.run(["amtool", *arguments], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written(folder: Path, text: str) -> Path:
    path = folder / "alertmanager.yml"
    path.write_text(text)
    return path


# -- the file


@needs_amtool
@pytest.mark.parametrize(
    "config",
    [
        Config(),
        Config(notify=Notify(urls=("slack://a/b/c", "json://user:word@host/x\n"), digest_s=3600.0)),
        Config(alerts=Alerts(group_wait_s=0.0, group_interval_s=0.5, repeat_interval_s=7.25)),
    ],
    ids=["defaults", "with apprise's addresses", "odd numbers"],
)
@pytest.mark.parametrize("url", ["", "https://pager.example.org/hook?a=b#'\""])
def test_alertmanager_takes_the_file(tmp_path: Path, config: Config, url: str) -> None:
    text = alertmanager_yml(config, page_receiver=url, record_receiver=url)
    amtool("check-config", str(written(tmp_path, text)))


@needs_amtool
def test_the_other_ways_to_be_woken_can_be_taken_as_they_stand(tmp_path: Path) -> None:
    lines = alertmanager_yml(Config()).splitlines()
    first = next(number for number, line in enumerate(lines) if "# pagerduty_configs" in line)
    last = next(number for number, line in enumerate(lines) if "name: record" in line)
    lines[first:last] = [line.replace("# ", "", 1) for line in lines[first:last]]
    said = amtool("check-config", str(written(tmp_path, "\n".join(lines))))
    assert "SUCCESS" in said
    assert "routing_key_file" in "\n".join(line for line in lines if not line.lstrip().startswith("#"))


@needs_amtool
@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ("level=page run=r42 alertname=TrainingStepStalled", "page"),
        ("level=page run=r42 host=n0 gpu=5 alertname=GpuXidError", "page"),
        ("level=record run=r42 alertname=TrainingRestarting", "record"),
        ("run=r42 alertname=SomebodyElses", "page"),
    ],
)
def test_pages_go_to_the_pager_and_records_to_the_digest(tmp_path: Path, labels: str, receiver: str) -> None:
    path = written(tmp_path, alertmanager_yml(Config()))
    assert amtool("config", "routes", "test", f"--config.file={path}", *labels.split()).split() == [receiver]


def test_intervals_are_those_of_the_configuration() -> None:
    alerts = Alerts(group_wait_s=7.0, group_interval_s=420.0, repeat_interval_s=7200.0)
    text = alertmanager_yml(Config(alerts=alerts, notify=Notify(digest_s=43_200.0)))
    for line in ("group_wait: 7s", "group_interval: 7m", "repeat_interval: 2h", "group_interval: 12h"):
        assert f" {line}\n" in text


def test_no_secret_of_the_embedded_judge_gets_into_the_file() -> None:
    text = alertmanager_yml(Config(notify=Notify(urls=("slack://T1JJ3T3L2/A1BRTD4JD/secret",))))
    assert "slack://…" in text
    assert "secret" not in text.replace("passwords stand", "")


def test_who_has_no_receiver_is_told_so_in_the_file() -> None:
    assert "NOBODY IS PAGED" in alertmanager_yml(Config())
    assert "NOBODY IS PAGED" not in alertmanager_yml(Config(), page_receiver="http://127.0.0.1:1/")


def test_every_inhibition_guards_each_label_that_it_compares_on_both_sides() -> None:
    text = alertmanager_yml(Config())
    for inhibition in INHIBITIONS:
        for label in inhibition.equal:
            assert text.count(f"'{label}!=\"\"'") >= 2
    assert text.count("equal: [") == len(INHIBITIONS)


def test_who_inhibits_and_who_is_inhibited_are_rules_that_exist() -> None:
    known = {rule.name for rule in RULES}
    assert {name for each in INHIBITIONS for name in each.sources | each.targets} <= known


def test_only_the_restart_that_began_without_a_page_silences() -> None:
    marked = [line for line in alertmanager_yml(Config()).splitlines() if "paged" in line]
    assert len(marked) == 1
    assert "source_matchers" in marked[0]
    assert "TrainingRestarting" in marked[0]


# -- a real Alertmanager

QUICK = Alerts(group_wait_s=1.0, group_interval_s=4.0, repeat_interval_s=3600.0)


class Alertmanager:
    """One that listens on loopback; `fire` and `resolve` speak to it as Prometheus would."""

    def __init__(self, folder: Path, config: Config, receiver: str, record_receiver: str = "") -> None:
        text = alertmanager_yml(config, page_receiver=receiver, record_receiver=record_receiver)
        self._path = written(folder, text)
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{self._port}", trust_env=False)

    def start(self, *others: str) -> None:
        self._process = subprocess.Popen(
            [
                "prometheus-alertmanager",
                f"--config.file={self._path}",
                f"--storage.path={self._folder}/alertmanager",
                f"--web.listen-address=127.0.0.1:{self._port}",
                *(others or ALERTMANAGER_ARGUMENTS[1:]),
                *ALERTMANAGER_ARGUMENTS[:1],
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._is_ready, 120)

    def _is_ready(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return self._client.get("/-/ready").status_code == 200
        return False

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process:
            self._process.send_signal(number)
            self._process.wait()

    def fire(self, *alerts: tuple[str, dict[str, str]], ended: bool = False, since_s: float = 0.0) -> None:
        now = time.time()
        body = [
            {
                "labels": {"alertname": name, "level": "page", **labels},
                "annotations": {"summary": f"{labels.get('run')}: {name}"},
                "startsAt": stamp(now - since_s),
                "endsAt": stamp(now if ended else now + 240),
            }
            for name, labels in alerts
        ]
        self._client.post("/api/v2/alerts", json=body).raise_for_status()


def stamp(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).isoformat()


@contextlib.contextmanager
def alertmanager(folder: Path, config: Config) -> Iterator[tuple[Alertmanager, Webhook]]:
    with Webhook() as webhook:
        server = Alertmanager(folder, config, webhook.url)
        server.start()
        try:
            yield server, webhook
        finally:
            server.stop()


def told(webhook: Webhook, run: str) -> list[tuple[str, list[str]]]:
    """Each message about a run: its status and the alerts in it."""
    return [
        (body["status"], sorted(alert["labels"]["alertname"] for alert in body["alerts"]))
        for body in webhook.received
        if body["groupLabels"].get("run") == run
    ]


_runs = (f"r{number}" for number in itertools.count())


def of(run: str, host: str | None = None, **others: str) -> dict[str, str]:
    return {"run": run, **({} if host is None else {"host": host}), **others}


@needs_alertmanager
@pytest.mark.slow
def test_one_incident_is_one_message(tmp_path: Path) -> None:
    """Several runs side by side, since each has to wait for intervals."""
    xid, stall, gone, slow = "GpuXidError", "TrainingStepStalled", "TrainingProcessGone", "GpuClockLow"
    with alertmanager(tmp_path, Config(alerts=QUICK)) as (server, webhook):
        inhibited, together, joins, late, hostless, elsewhere, over, other = itertools.islice(_runs, 8)
        server.fire((xid, of(inhibited, "n0")), (xid, of(elsewhere, "n0")), (xid, of(hostless)))
        server.fire((slow, of(elsewhere, "n1")), (slow, of(hostless)), (stall, of(late)))
        server.fire((stall, of(joins)), (stall, of(over)), (stall, {}), (xid, {"host": "n0"}))
        server.fire((stall, of(together)), (xid, of(together, "n0")))
        server.fire((stall, of(other)), ("TrainingRestarting", of(other, level="record")))
        time.sleep(2.0)
        server.fire((stall, of(inhibited)), (gone, of(joins)), (xid, of(late, "n0")))
        server.fire((stall, of(over)), ended=True)
        time.sleep(1.0)
        assert told(webhook, joins) == [("firing", [stall])], "what joins waits for the group interval"
        time.sleep(6.0)
        assert told(webhook, inhibited) == [("firing", [xid])]
        assert told(webhook, together) == [("firing", [xid])], "whatever came first within the group wait"
        assert told(webhook, joins) == [("firing", [stall]), ("firing", [gone, stall])]
        assert told(webhook, late) == [("firing", [stall]), ("firing", [xid])], "the fault is an update"
        assert told(webhook, hostless) == [("firing", [slow, xid])], "what both lack is not equal"
        assert told(webhook, elsewhere) == [("firing", [slow, xid])], "another host"
        assert told(webhook, over) == [("firing", [stall]), ("resolved", [stall])]
        assert told(webhook, other) == [], "a restart is no page and inhibits the stall"
        without_run = [body for body in webhook.received if "run" not in body["groupLabels"]]
        assert [len(body["alerts"]) for body in without_run] == [2], "what both lack is not equal"


@needs_alertmanager
@pytest.mark.slow
def test_a_page_repeats_only_as_configured_and_records_are_told_together(tmp_path: Path) -> None:
    alerts = Alerts(group_wait_s=1.0, group_interval_s=3.0, repeat_interval_s=8.0)
    config = Config(alerts=alerts, notify=Notify(digest_s=60.0))
    low, wait = "GpuClockLow", "DataLoadingWait"
    with Webhook() as pager, Webhook() as digest:
        server = Alertmanager(tmp_path, config, pager.url, digest.url)
        server.start()
        try:
            server.fire(("TrainingStepStalled", of("r1")), (low, of("r1", "n0", level="record")))
            time.sleep(1.5)
            server.fire((wait, of("r1", level="record")))
            time.sleep(12.5)
            server.fire((low, of("r1", "n0", level="record")), ended=True)
            time.sleep(1.0)
        finally:
            server.stop()
    assert [status for status, _ in told(pager, "r1")] == ["firing", "firing"]
    first, again = pager.arrivals
    assert 8.0 <= again.t - first.t <= 8.0 + 3.0 + 1.0, "the repeat interval, up to a group interval more"
    assert told(digest, "r1") == [("firing", [wait, low])], "once, both, and none that says that it is over"


@needs_alertmanager
@pytest.mark.slow
def test_what_was_told_before_a_restart_is_told_to_be_over_and_the_next_stall_is_a_page(
    tmp_path: Path,
) -> None:
    stall, restarting = "TrainingStepStalled", "TrainingRestarting"
    with alertmanager(tmp_path, Config(alerts=QUICK)) as (server, webhook):
        server.fire((stall, of("r1")))
        time.sleep(2.0)
        server.fire((restarting, of("r1", level="record", paged="before")))
        server.fire((stall, of("r1")), ended=True)
        time.sleep(5.0)
        assert [status for status, _ in told(webhook, "r1")] == ["firing", "resolved"]
        server.fire((restarting, of("r1", level="record")))
        time.sleep(0.5)
        server.fire((stall, of("r1")))
        time.sleep(2.0)
        assert len(told(webhook, "r1")) == 2, "the restart silences it"
        server.fire((restarting, of("r1", level="record")), ended=True)
        time.sleep(5.0)
        assert [status for status, _ in told(webhook, "r1")] == ["firing", "resolved", "firing"]


@needs_alertmanager
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["restarted", "killed"])
def test_an_alertmanager_that_comes_back_repeats_nothing(tmp_path: Path, number: int) -> None:
    """Its inhibitor and its dispatcher take up alerts side by side, and a group older than its wait is told
    at once: the fault is sent a moment before what it inhibits, so that no race is tested."""
    xid, stall = "GpuXidError", "TrainingStepStalled"
    with Webhook() as webhook:
        server = Alertmanager(tmp_path, Config(alerts=QUICK), webhook.url)
        server.start("--data.maintenance-interval=1s")
        try:
            server.fire((xid, of("r1", "n0")), (stall, of("r2")))
            time.sleep(3.0)
            server.fire((stall, of("r1")))
            time.sleep(1.0)
            server.stop(number)
            server.start()
            server.fire((xid, of("r1", "n0")), since_s=4.0)
            time.sleep(0.5)
            server.fire((stall, of("r1")), (stall, of("r2")), since_s=4.0)
            time.sleep(6.0)
            assert told(webhook, "r1") == [("firing", [xid])]
            assert told(webhook, "r2") == [("firing", [stall])]
            server.fire((xid, of("r1", "n0")), (stall, of("r1")), (stall, of("r2")), ended=True)
            time.sleep(5.0)
            assert [status for status, _ in told(webhook, "r1")] == ["firing", "resolved"]
            assert [status for status, _ in told(webhook, "r2")] == ["firing", "resolved"]
        finally:
            server.stop()
