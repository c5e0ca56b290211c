"""Is a GPU's memory sound, does it come near its peak, and does it throttle when it is given work?

What is asked of torch and of NVML stands behind two small protocols, `Gpu` and `Card`, so that the questions
can be tested where there is no GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from train_ledger.signals.sampling.flops import peak_flops
from train_ledger.signals.sampling.gpu import gpu_of

if TYPE_CHECKING:
    import torch

__all__ = ["Card", "CardReading", "Gpu", "NvmlCard", "TorchGpu", "self_test", "under_load"]

_GEMM_S = 3.0
_SIZE = 8192
_PATTERNS = (0x00, 0xFF, 0x55, 0xAA)
_MEMORY_SHARE = 0.8
_BLOCK_BYTES = 1 << 30
_LOOK_EVERY_S = 2.0
_SETTLES_S = 10.0
_XID = "DCGM_FI_DEV_XID_ERRORS"
_SM_CLOCK = "DCGM_FI_DEV_SM_CLOCK"
_REASONS = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
_TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"


@dataclass(frozen=True, slots=True)
class CardReading:
    """One look at a card, None where the driver does not tell: MHz, NVML's bits of reasons, °C, last XID."""

    sm_mhz: float | None = None
    max_mhz: float | None = None
    reasons: int | None = None
    temperature_c: float | None = None
    xid: int | None = None


class Gpu(Protocol):
    """What is asked of a GPU that works."""

    name: str
    pci: str | None
    total_bytes: int

    def memory_errors(self) -> tuple[int, int]:
        """Bytes that were written and read back, and how many of them came back otherwise."""

    def gemm(self, seconds: float) -> float:
        """FLOP/s of bf16 matrix products over that time."""


class Card(Protocol):
    """What is asked of the driver."""

    def read(self) -> CardReading:
        """How the card is doing."""


def self_test(gpu: Gpu, card: Card) -> dict[str, Any]:
    """Memory, matrix products and XIDs of one GPU; `peak` is None where its model is not in the table."""
    tested, wrong = gpu.memory_errors()
    gpu.gemm(_GEMM_S / 3)  # clocks and caches warm up
    flops = gpu.gemm(_GEMM_S)
    return {
        "name": gpu.name,
        "total_bytes": gpu.total_bytes,
        "memory_tested_bytes": tested,
        "memory_wrong_bytes": wrong,
        "gemm_flops": flops,
        "peak_flops": peak_flops(gpu.name, gpu.pci),
        "xid": card.read().xid,
    }


def under_load(
    gpu: Gpu, card: Card, seconds: float, *, clock: Callable[[], float] = time.monotonic
) -> dict[str, Any]:
    """Readings of the card, one every few seconds, while it does nothing but matrix products.

    Those of the first ten seconds, in which clocks settle, are left out unless there are no others.
    """
    began, readings = clock(), []
    while (passed := clock() - began) < seconds:
        gpu.gemm(min(_LOOK_EVERY_S, seconds - passed))
        readings.append((clock() - began, card.read()))
    settled = [it for at, it in readings if at > _SETTLES_S] or [it for _, it in readings]
    return {"seconds": seconds, "readings": [asdict(it) for it in settled]}


class TorchGpu:
    """A GPU by torch; its memory is tested in blocks of 1 GiB, as much as is free but for a fifth."""

    def __init__(self, device: torch.device, pci: str | None) -> None:
        import torch

        properties = torch.cuda.get_device_properties(device)
        self.name, self.pci, self.total_bytes = properties.name, pci, int(properties.total_memory)
        self._device = device

    def memory_errors(self) -> tuple[int, int]:
        import torch

        free, _ = torch.cuda.mem_get_info(self._device)
        blocks = []
        for _ in range(max(1, int(free * _MEMORY_SHARE) // _BLOCK_BYTES)):
            blocks.append(torch.empty(_BLOCK_BYTES, dtype=torch.uint8, device=self._device))
        wrong = 0
        for pattern in _PATTERNS:
            for block in blocks:
                block.fill_(pattern)
            wrong += sum(int((block != pattern).sum().item()) for block in blocks)
        tested = len(blocks) * _BLOCK_BYTES
        del blocks
        torch.cuda.empty_cache()
        return tested, wrong

    def gemm(self, seconds: float) -> float:
        import torch

        one = torch.randn(_SIZE, _SIZE, dtype=torch.bfloat16, device=self._device)
        two = torch.randn(_SIZE, _SIZE, dtype=torch.bfloat16, device=self._device)
        torch.cuda.synchronize(self._device)
        began, products = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            for _ in range(10):
                torch.mm(one, two)
            products += 10
            torch.cuda.synchronize(self._device)
        return products * 2.0 * _SIZE**3 / (time.perf_counter() - began)


class NvmlCard:
    """The card of a local rank by NVML; `library` is nvidia-ml-py's module, imported where it is None."""

    def __init__(self, local_rank: int, library: Any = None) -> None:
        from train_ledger.sources.hardware.nvml import Nvml

        told = gpu_of(local_rank)
        self.pci: str | None = told.get("pci")
        self._index = told.get("gpu", local_rank)
        self._library = library
        self._nvml = Nvml("", library)
        self.read()  # from here on the driver tells of XIDs

    def read(self) -> CardReading:
        from train_ledger.sources.hardware.nvml import NvmlUnusableError

        try:
            looks = {it.gpu: it.values for it in self._nvml.look(time.time())}
        except NvmlUnusableError:
            return CardReading()
        values = looks.get(self._index, {})
        return CardReading(
            sm_mhz=values.get(_SM_CLOCK),
            max_mhz=self._max_mhz(),
            reasons=_whole(values, _REASONS),
            temperature_c=values.get(_TEMPERATURE),
            xid=_whole(values, _XID),
        )

    def _max_mhz(self) -> float | None:
        import importlib

        nvml: Any = self._library or importlib.import_module("pynvml")
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(self._index)
            return float(nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM))
        except nvml.NVMLError:
            return None


def _whole(values: Mapping[str, float], name: str) -> int | None:
    value = values.get(name)
    return None if value is None else int(value)
