"""dcgm-exporter is asked where one is named, and the driver where it does not answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from sources.hardware.fake_driver import LOST, FakeDriver, FakeGpu
from train_ledger.sources.hardware.cards import Cards, has_gpus

T = 1_770_000_000.0
PAGE = (
    'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",hostname="localhost"} 61\n'
    'DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-1",hostname="localhost"} 62\n'
    'DCGM_FI_DEV_MEMORY_TEMP{gpu="1",UUID="GPU-1",hostname="localhost"} 140737488355330\n'
    'DCGM_FI_DEV_MEMORY_TEMP{gpu="0",UUID="GPU-0",hostname="localhost"} 70\n'
    "DCGM_FI_DEV_POWER_USAGE broken\n"
)


class Exporter(BaseHTTPRequestHandler):
    page = PAGE

    def do_GET(self) -> None:
        body = self.page.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Exporter)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()
    thread.join(60)


def test_dcgm_exporter_is_asked_and_is_of_this_host(url: str) -> None:
    look = Cards("n7", url).look(T)
    assert [(it.host, it.gpu, it.by) for it in look.readings] == [("n7", 0, "dcgm"), ("n7", 1, "dcgm")]
    assert "DCGM_FI_DEV_MEMORY_TEMP of GPU 1" in look.not_observed
    assert "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" in look.not_observed  # not in this exporter's table
    assert "DCGM_FI_DEV_GPU_TEMP" not in look.not_observed
    assert "dcgm-exporter: lines not read: not_a_sample" in look.not_observed


def test_where_it_does_not_answer_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeDriver([FakeGpu()]).install(monkeypatch)
    look = Cards("n7", "http://127.0.0.1:1/metrics").look(T)
    assert [it.by for it in look.readings] == ["nvml"]
    assert look.not_observed[0].startswith("dcgm-exporter: http://127.0.0.1:1/metrics: ")


def test_an_exporter_without_gpus_does_not_answer(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Exporter, "page", "node_load1 0.5\n")
    FakeDriver([FakeGpu()]).install(monkeypatch)
    look = Cards("n7", url).look(T)
    assert [it.by for it in look.readings] == ["nvml"]
    assert "serves no figures of a GPU" in look.not_observed[0]


def test_a_lost_gpu_is_said_beside_the_readings_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [FakeGpu(uuid=f"GPU-{n}") for n in range(3)]
    FakeDriver(gpus).install(monkeypatch)
    cards = Cards("n7")
    cards.look(T)
    gpus[1].codes["*"] = LOST
    look = cards.look(T + 10)
    assert [it.gpu for it in look.readings] == [0, 2]
    assert "GPU 1 (GPU-1): NVML says: GPU is lost" in look.not_observed
    assert "DCGM_FI_PROF_SM_ACTIVE" in look.not_observed


@pytest.mark.skipif(has_gpus(), reason="this host has GPUs")
def test_a_host_without_gpus_says_so() -> None:
    look = Cards("n7").look(T)
    assert look.readings == []
    assert look.not_observed[0].startswith("GPUs: ")
