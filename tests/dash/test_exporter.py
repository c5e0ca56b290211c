"""The exporter over real files and real HTTP."""

from __future__ import annotations

import json
import math
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from dash.test_exposition import parsed
from train_ledger.config import Config
from train_ledger.dash import exporter as exporter_module
from train_ledger.dash.exporter import Exporter
from train_ledger.dash.server import AddressUnusableError
from train_ledger.run_dir import RunDir


def write(run_dir: RunDir, rank: int, *lines: dict[str, Any], torn: bytes = b"") -> None:
    run_dir.signals.mkdir(parents=True, exist_ok=True)
    with run_dir.signals_of(rank).open("ab") as file:
        file.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines) + torn)


def start(t: float, rank: int, **others: Any) -> dict[str, Any]:
    return {"t": t, "rank": rank, "step": 0, "event": "run_start", "world_size": 2, "host": "node1", **others}


def step(t: float, rank: int, step: int, **others: Any) -> dict[str, Any]:
    return {"t": t, "rank": rank, "step": step, **others}


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "r42")
    now = time.time()
    for rank in (0, 1):
        write(
            run,
            rank,
            start(now - 20, rank),
            *(step(now - 20 + n, rank, n, loss=3.0 - n / 10) for n in range(1, 11)),
        )
    return run


@pytest.fixture
def exporter(run_dir: RunDir) -> Exporter:
    return Exporter(run_dir, Config())


def run_of(run_dir: RunDir) -> tuple[tuple[str, str], ...]:
    return (("run", run_dir.path.name),)


def test_before_the_files_are_read_there_is_nothing_to_scrape(exporter: Exporter) -> None:
    with exporter.serve(port=0) as url, httpx.Client(base_url=url, trust_env=False) as client:
        assert client.get("/metrics").status_code == 503
        assert client.get("/healthz").text == "alive\n"
        assert exporter.poll()
        answer = client.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=")
        assert parsed(answer.text)["train_step", (("rank", "1"), ("run", "r42"))] == 10
        assert client.head("/metrics").text == ""
        assert client.get("/elsewhere").status_code == 404
        assert client.post("/metrics").status_code == 405


def test_what_is_appended_shows_at_the_next_look(exporter: Exporter, run_dir: RunDir) -> None:
    exporter.poll()
    write(run_dir, 0, step(time.time(), 0, 11, loss="NaN"), step(time.time(), 0, 12, loss=1.0))
    exporter.poll()
    found = parsed(exporter.metrics() or "")
    assert found["train_step", (("rank", "0"), ("run", "r42"))] == 12
    assert found["train_loss_nonfinite_total", (("rank", "0"), ("run", "r42"))] == 1


def test_it_tells_about_itself(exporter: Exporter, run_dir: RunDir) -> None:
    write(run_dir, 1, torn=b"[1]\nnull\n")
    exporter.poll()
    found = parsed(exporter.metrics() or "")
    run = run_of(run_dir)
    assert abs(found["train_exporter_clock_seconds", run] - time.time()) < 120
    assert found["train_exporter_ready", run] == 1
    assert found["train_exporter_files", run] == 2
    assert found["train_exporter_lag_bytes", run] == 0
    assert found["train_exporter_poll_age_seconds", run] < 120
    assert found["train_exporter_series", run] > 20
    bad = {
        dict(key)["reason"]: n for (name, key), n in found.items() if name == "train_exporter_bad_lines_total"
    }
    assert sum(bad.values()) == 2


@pytest.mark.parametrize(("age_s", "is_stale"), [(500.0, False), (700.0, True)])
def test_a_rank_that_fell_silent_shows_no_figures_of_now(
    run_dir: RunDir, age_s: float, is_stale: bool
) -> None:
    now = time.time() + age_s
    write(run_dir, 1, step(now - 1, 1, 11, loss=1.5, skipped=3))
    exporter = Exporter(run_dir, Config(), clock=lambda: now)
    exporter.poll()
    found = parsed(exporter.metrics() or "")
    silent, heard = (("rank", "0"), *run_of(run_dir)), (("rank", "1"), *run_of(run_dir))
    assert (("train_loss", silent) in found) is not is_stale
    assert (found["train_rank_stale", silent], found["train_rank_stale", heard]) == (float(is_stale), 0.0)
    assert found["train_loss", heard] == 1.5
    for fact in ("train_step", "train_last_step_completed_timestamp_seconds", "train_loss_nonfinite_total"):
        assert (fact, silent) in found, "what the rules reckon with stays"
    exporter.close()


def test_a_look_that_finds_nothing_new_shows_what_time_alone_has_changed(
    run_dir: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter_module, "_QUIET_LOOK_S", 0.0)
    moments = [time.time()]
    exporter = Exporter(run_dir, Config(), clock=lambda: moments[-1])
    stalled = ("train_run_state", (*run_of(run_dir), ("state", "stalled")))
    for later_s, is_stalled in ((0, 0.0), (200, 1.0)):
        moments.append(moments[0] + later_s)
        exporter.poll()
        assert parsed(exporter.metrics() or "")[stalled] == is_stalled
    exporter.close()


def test_a_run_that_stands_shows_no_overdue_checkpoint_at_any_scrape(
    run_dir: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter_module, "_QUIET_LOOK_S", 0.0)
    began = time.time() - 100
    for n in range(5):
        saved = {"event": "ckpt_saved", "duration_s": 1.0}
        write(run_dir, 0, {**step(began + 20 * n, 0, 10 + 20 * n), **saved})
        write(run_dir, 0, step(began + 20 * n + 1, 0, 11 + 20 * n), step(began + 20 * n + 2, 0, 12 + 20 * n))
    moments = [began + 85]
    exporter = Exporter(run_dir, Config(), clock=lambda: moments[-1])
    due = ("train_ckpt_due_timestamp_seconds", run_of(run_dir))
    exporter.poll()
    assert parsed(exporter.metrics() or "")[due] == pytest.approx(began + 140)
    for later_s in (115, 135, 145):
        moments.append(began + later_s)
        exporter.poll()
        assert math.isnan(parsed(exporter.metrics() or "")[due])
    exporter.close()


def test_the_clock_goes_on_while_a_look_hangs(run_dir: RunDir) -> None:
    times = iter(range(1_000_000, 2_000_000))
    exporter = Exporter(run_dir, Config(), clock=lambda: float(next(times)))
    exporter.poll()
    first, second = (parsed(exporter.metrics() or "") for _ in range(2))
    key = ("train_exporter_clock_seconds", run_of(run_dir))
    assert second[key] == first[key] + 1


@pytest.mark.parametrize("ranks", [(0, 1), (4, 5)])
@pytest.mark.parametrize("jump_s", [600.0, -600.0])
def test_a_clock_that_jumps_neither_pages_nor_hides(
    tmp_path: Path, ranks: tuple[int, ...], jump_s: float
) -> None:
    """The age that Prometheus works out is the true one, on the node of rank 0 and on others."""
    run, began_t = RunDir(tmp_path / "r42"), 1_800_000_000.0
    for rank in ranks:
        times = [began_t + n + (jump_s if n > 50 else 0) for n in range(1, 101)]
        lines = [step(t, rank, n, step_time_s=1.0) for n, t in enumerate(times, start=1)]
        write(run, rank, start(began_t, rank), *lines)
    exporter = Exporter(run, Config(), clock=lambda: began_t + jump_s + 102)
    exporter.poll()
    found = parsed(exporter.metrics() or "")
    clock = found["train_exporter_clock_seconds", run_of(run)]
    for rank in ranks:
        labels = (("rank", str(rank)), *run_of(run))
        assert clock - found["train_last_step_completed_timestamp_seconds", labels] == pytest.approx(2.0)


def test_only_ranks_of_the_asked_hosts(run_dir: RunDir) -> None:
    write(run_dir, 2, start(time.time(), 2, host="node2"), step(time.time(), 2, 5))
    exporter = Exporter(run_dir, Config(), hosts=["node2"])
    exporter.poll()
    ranks = {dict(key).get("rank") for name, key in parsed(exporter.metrics() or "") if name == "train_step"}
    assert ranks == {"2"}


def test_the_name_of_the_run_is_that_of_run_json(run_dir: RunDir) -> None:
    run_dir.run_json.write_text('{"run": "big \\"one\\""}')
    exporter = Exporter(run_dir, Config())
    exporter.poll()
    assert ("train_run_finished", (("run", 'big "one"'),)) in parsed(exporter.metrics() or "")


def test_a_taken_address_is_one_clear_line(exporter: Exporter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(AddressUnusableError) as refused, exporter.serve(port=port):
            pass
    text = str(refused.value)
    assert f"127.0.0.1:{port}" in text
    assert "in use" in text
    assert "--port" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("host", "port", "why"),
    [
        ("not a host", 0, "no address"),
        ("", 0, "no address"),
        ("192.0.2.1", 0, "no such address"),
        ("127.0.0.1", 70000, "0 to 65535"),
    ],
)
def test_an_address_that_cannot_be_used_is_one_clear_line(
    exporter: Exporter, host: str, port: int, why: str
) -> None:
    with pytest.raises(AddressUnusableError, match=why), exporter.serve(host, port):
        pass


def test_the_port_is_free_again_afterwards(exporter: Exporter) -> None:
    with exporter.serve(port=0) as url:
        port = int(url.rpartition(":")[2])
    with exporter.serve(port=port) as again:
        assert again == url


def test_a_run_json_that_comes_later_names_the_run(tmp_path: Path) -> None:
    """Exporters of all nodes start with the job, and rank 0 writes run.json when it comes to it."""
    run = RunDir(tmp_path / "job-17")
    run.path.mkdir()
    exporter = Exporter(run, Config(), clock=lambda: 110.0)
    exporter.poll()
    assert parsed(exporter.metrics() or "")["train_exporter_ready", run_of(run)] == 1.0
    run.merge_run({"run": "big", "world_size": 2})
    exporter.poll()
    write(run, 0, start(100.0, 0), step(101.0, 0, 1))
    exporter.poll()
    samples = parsed(exporter.metrics() or "")
    assert {dict(labels)["run"] for _, labels in samples} == {"big"}
    assert exporter.state.world_size == 2


def test_a_run_json_that_comes_later_and_cannot_be_read_is_said_once(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "job-17")
    run.path.mkdir()
    exporter = Exporter(run, Config())
    run.run_json.write_text("{")
    for _ in range(3):
        exporter.poll()
    assert len(exporter.remarks()) == 1
    assert exporter.metrics()
