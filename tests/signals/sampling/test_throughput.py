"""Tokens per second, TFLOP/s and MFU, where they can be known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from train_ledger.signals.sampling.flops import non_data_parallel_size, peak_flops
from train_ledger.signals.sampling.throughput import Throughput

# Llama 3 8B at 8192 tokens.
MODEL = {"params": 8.03e9, "layers": 32, "heads": 32, "head_dim": 128, "seq_len": 8192}
SXM = "NVIDIA H100 80GB HBM3"


def test_mfu_by_the_formula() -> None:
    fields = Throughput(MODEL, {"dp": 8, "tp": 2}, device=SXM).fields(tokens=16384, step_time_s=1.25)
    tps = 16384 / 1.25 / 2
    flop_per_token = 6 * 8.03e9 + 12 * 32 * 32 * 128 * 8192
    assert fields["tps"] == pytest.approx(tps)
    assert fields["tflops"] == pytest.approx(flop_per_token * tps / 1e12)
    assert fields["mfu"] == pytest.approx(100 * flop_per_token * tps / 989e12)


@pytest.mark.parametrize(
    ("model", "device", "known"),
    [
        (None, SXM, {"tps"}),
        ({"params": 8.03e9}, SXM, {"tps"}),
        (MODEL, "NVIDIA H100", {"tps", "tflops"}),
        (MODEL, "NVIDIA GeForce RTX 4090", {"tps", "tflops"}),
        ({**MODEL, "dtype": "fp8"}, SXM, {"tps", "tflops"}),
        ({**MODEL, "quantized": True}, SXM, {"tps", "tflops"}),
        (MODEL, SXM, {"tps", "tflops", "mfu"}),
    ],
)
def test_what_is_not_known_is_not_guessed(model: dict[str, Any] | None, device: str, known: set[str]) -> None:
    assert Throughput(model, None, device=device).fields(4096, 1.0).keys() == known


def test_more_than_the_device_can_do_is_said_once() -> None:
    said: list[str] = []
    throughput = Throughput(MODEL, None, device=SXM)
    throughput.warn = lambda about, message: said.append(message)
    for _ in range(3):
        assert throughput.fields(1e6, 1.0)["mfu"] > 100
    assert len(said) == 1
    assert "more than the device can do" in said[0]


def test_a_peak_that_is_given_counts() -> None:
    assert Throughput(MODEL, None, peak=1e15, device=SXM).peak == 1e15


def test_tokens_that_are_a_tensor_are_not_asked_for() -> None:
    assert Throughput(MODEL, None, device=SXM).fields(object(), 1.0) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H100 NVL", 835e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA A100 80GB PCIe", 312e12),
        ("NVIDIA H200", 989e12),
        ("NVIDIA H200 NVL", 835.5e12),
        ("NVIDIA GH200 480GB", 990e12),
        ("NVIDIA B200", 2250e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L40", None),
        ("NVIDIA H20", None),
        ("NVIDIA A10", None),
        ("AMD Instinct MI300X", 1307.4e12),
        ("Tesla V100-SXM2-16GB", None),
    ],
)
def test_the_peak_of_a_device(name: str, peak: float | None) -> None:
    assert peak_flops(name) == peak


def test_a_bare_h100_is_told_by_its_pci_device(tmp_path: Path) -> None:
    device = tmp_path / "0000:1b:00.0"
    device.mkdir()
    (device / "device").write_text("0x2331\n")
    assert peak_flops("NVIDIA H100", "0000:1B:00.0", tmp_path) == 756e12
    (device / "device").write_text("0xffff\n")
    assert peak_flops("NVIDIA H100", "0000:1B:00.0", tmp_path) is None
    assert peak_flops("NVIDIA H100", "0000:99:00.0", tmp_path) is None


def test_the_gpus_that_share_their_tokens() -> None:
    assert non_data_parallel_size({"dp": 16, "tp": 8, "pp": 2, "cp": 2, "ep": 4, "order": ["tp"]}) == 32
    assert non_data_parallel_size(None) == 1
    assert non_data_parallel_size({"tp": "eight"}) is None


@pytest.mark.parametrize("tokens", [10**400, "4096", -1, float("nan"), object()])
def test_tokens_that_are_no_number_are_refused_with_one_warning(tokens: Any) -> None:
    said: list[str] = []
    throughput = Throughput(MODEL, None, device=SXM)
    throughput.warn = lambda about, message: said.append(message)
    assert throughput.fields(tokens, 1.0) == throughput.fields(tokens, 1.0) == {}
    assert len(said) == 1


def test_a_step_without_tokens_is_one() -> None:
    assert Throughput(None, None).fields(0, 1.0) == {"tps": 0.0}


@pytest.mark.parametrize(
    ("model", "parallelism", "peak", "refused", "known"),
    [
        (MODEL, None, "989e12", ["peak_flops"], {"tps", "tflops"}),
        (MODEL, None, 10**400, ["peak_flops"], {"tps", "tflops"}),
        ({**MODEL, "params": 10**400}, None, 1e15, ["params"], {"tps"}),
        ({**MODEL, "quantized": object(), "dtype": object()}, None, 1e15, [], {"tps", "tflops"}),
        (MODEL, {"tp": 10**400}, 1e15, ["tp"], set()),
        (MODEL, {"tp": 1e308, "pp": 1e308}, 1e15, [], set()),
        (MODEL, {"tp": 1e-320}, 1e15, [], set()),
    ],
)
def test_a_figure_that_is_no_number_leaves_out_what_needs_it(
    model: Any, parallelism: Any, peak: Any, refused: list[str], known: set[str]
) -> None:
    throughput = Throughput(model, parallelism, peak)
    assert throughput.refused == refused
    assert throughput.fields(4096, 1e-9).keys() == known
