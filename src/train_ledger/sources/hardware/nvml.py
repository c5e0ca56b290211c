"""What does the NVIDIA driver itself say of each GPU, where no dcgm-exporter runs?

By nvidia-ml-py, imported when it is asked first. Nothing is changed on a GPU and no context is made on it. A
call may hang with a GPU that is falling off the bus, so whoever asks does it in a thread that may be lost.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from train_ledger.facts import HardwareReading
from train_ledger.sources.hardware.gpu_fields import PROFILING, XID
from train_ledger.sources.hardware.nvml_figures import (
    LINK_ERRORS,
    MEMORY_TEMP,
    NEVER,
    QUESTIONS,
    TRAFFIC,
    field_values,
    link_errors,
)
from train_ledger.sources.logs.kernel_log import pci_address

__all__ = ["Nvml", "NvmlUnusableError"]

_TIMEOUT = 10
_GONE = frozenset({15, 16, 28})
"""NVML_ERROR_GPU_IS_LOST, _RESET_REQUIRED, _GPU_NOT_FOUND."""

_CLOSED = frozenset({1, 9, 12, 18})
"""NVML_ERROR_UNINITIALIZED, _DRIVER_NOT_LOADED, _LIBRARY_NOT_FOUND, _LIB_RM_VERSION_MISMATCH: the driver is
being loaded anew, so that NVML is to be opened anew."""

_MOST_EVENTS = 1000
_BYTES_PER_KIB = 1024


class NvmlUnusableError(Exception):
    """NVML tells nothing on this host; the text says why in a few words."""


@dataclass(slots=True)
class _Gpu:
    index: int
    handle: Any
    uuid: str | None
    pci: str | None
    missing: set[str] = field(default_factory=set)
    traffic: dict[str, tuple[float, float]] = field(default_factory=dict)
    xid: int | None = None


class Nvml:
    """NVML, open from the first look on; `library` is nvidia-ml-py's module, imported where it is None."""

    def __init__(self, host: str, library: Any = None) -> None:
        self._host = host
        self._nvml = library
        self._is_open = False
        self._gpus: dict[int, _Gpu] = {}
        self._events: Any = None

    def look(self, t: float) -> list[HardwareReading]:
        """One reading a GPU, and one that names those that are lost; raises NvmlUnusableError.

        `not_observed` are the fields that this GPU, or this driver, never tells.
        """
        nvml = self._opened()
        lost: list[str] = []
        readings: list[HardwareReading] = []
        try:
            count = nvml.nvmlDeviceGetCount()
            self._hear_xids(nvml)
            for index in range(count):
                try:
                    readings.append(self._reading(nvml, self._gpu(nvml, index), t))
                except nvml.NVMLError as error:
                    lost.append(self._lost(index, error))
        except nvml.NVMLError as error:
            self.close()
            raise NvmlUnusableError(f"NVML says: {error}") from error
        if not count:
            raise NvmlUnusableError("NVML knows of no GPU")
        if lost:
            readings.append(HardwareReading(t, self._host, by="nvml", not_observed=tuple(lost)))
        return readings

    def close(self) -> None:
        """Let go of NVML; another look opens it again."""
        if self._is_open:
            self._is_open = False
            self._events = None
            self._gpus.clear()
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()

    def _opened(self) -> Any:
        if self._nvml is None:
            try:
                self._nvml = import_module("pynvml")
            except ImportError as error:
                raise NvmlUnusableError("the Python package nvidia-ml-py is not installed") from error
        nvml = self._nvml
        if not self._is_open:
            try:
                nvml.nvmlInit()
            except nvml.NVMLError as error:
                raise NvmlUnusableError(f"no NVIDIA driver that answers ({error})") from error
            self._is_open = True
            self._listen(nvml)
        return nvml

    def _gpu(self, nvml: Any, index: int) -> _Gpu:
        gpu = self._gpus.get(index)
        if gpu is None:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            pci = pci_address(_text(nvml.nvmlDeviceGetPciInfo(handle).busId))
            gpu = _Gpu(index, handle, _text(nvml.nvmlDeviceGetUUID(handle)), pci)
            gpu.xid = self._listen_to(nvml, handle)
            self._gpus[index] = gpu
        return gpu

    def _lost(self, index: int, error: Any) -> str:
        """Why a GPU has no reading; raises where it is NVML itself that does not answer."""
        if error.value in _CLOSED:
            raise error
        gpu = self._gpus.get(index)
        name = f" ({gpu.uuid})" if gpu else ""
        return f"GPU {index}{name}: NVML says: {error}"

    def _reading(self, nvml: Any, gpu: _Gpu, t: float) -> HardwareReading:
        values = dict(self._figures(nvml, gpu))
        if gpu.xid is None:
            gpu.missing.add(XID)
        else:
            values[XID] = float(gpu.xid)
        told_by_links = {name for name, _ in TRAFFIC}
        missing = {*gpu.missing, *(it for it in PROFILING if it not in told_by_links)} - values.keys()
        return HardwareReading(
            t,
            self._host,
            gpu=gpu.index,
            uuid=gpu.uuid,
            pci=gpu.pci,
            by="nvml",
            values=values,
            not_observed=tuple(sorted(missing)),
        )

    def _figures(self, nvml: Any, gpu: _Gpu) -> Iterator[tuple[str, float]]:
        for names, ask in QUESTIONS:
            if names[0] not in gpu.missing:
                with _told_or(gpu, names, nvml):
                    yield from zip(names, map(float, ask(nvml, gpu.handle)), strict=True)
        with _told_or(gpu, (MEMORY_TEMP[0],), nvml):
            for name, value in field_values(nvml, gpu.handle, (MEMORY_TEMP, *TRAFFIC)):
                yield from self._of_field(gpu, name, value)
        for name, fields in LINK_ERRORS:
            if name not in gpu.missing:
                with _told_or(gpu, (name,), nvml):
                    count = link_errors(nvml, gpu.handle, fields)
                    yield from self._of_field(gpu, name, count)

    def _of_field(self, gpu: _Gpu, name: str, value: float | None) -> Iterator[tuple[str, float]]:
        if value is None:
            gpu.missing.add(name)
        elif name in dict(TRAFFIC):
            now_s = time.monotonic()
            before = gpu.traffic.get(name)
            gpu.traffic[name] = (now_s, value)
            if before and now_s > before[0] and value >= before[1]:
                yield name, round((value - before[1]) * _BYTES_PER_KIB / (now_s - before[0]))
        else:
            yield name, value

    # -- XIDs, which the driver tells whoever listens

    def _listen(self, nvml: Any) -> None:
        with contextlib.suppress(nvml.NVMLError):
            self._events = nvml.nvmlEventSetCreate()

    def _listen_to(self, nvml: Any, handle: Any) -> int | None:
        """0 where this GPU's XIDs are heard from now on, else None."""
        if self._events is None:
            return None
        try:
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, self._events)
        except nvml.NVMLError:
            return None
        return 0

    def _hear_xids(self, nvml: Any) -> None:
        for _ in range(_MOST_EVENTS if self._gpus and self._events is not None else 0):
            try:
                event = nvml.nvmlEventSetWait_v2(self._events, 0)
                gpu = self._gpus.get(nvml.nvmlDeviceGetIndex(event.device))
            except nvml.NVMLError as error:
                if error.value == _TIMEOUT or error.value in _CLOSED:
                    return
                continue
            if gpu is not None and event.eventType == nvml.nvmlEventTypeXidCriticalError:
                gpu.xid = int(event.eventData)


@contextlib.contextmanager
def _told_or(gpu: _Gpu, names: tuple[str, ...], nvml: Any) -> Iterator[None]:
    """What is not told now is left out; what is never told is remembered. Raises where the GPU is gone."""
    try:
        yield
    except nvml.NVMLError as error:
        if error.value in _GONE or error.value in _CLOSED:
            raise
        if error.value in NEVER:
            gpu.missing.update(names)


def _text(value: str | bytes) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
