# ruff: noqa: N802 (the names of the library)
"""A driver that is not there: what libnvidia-ml.so.1 would answer to nvidia-ml-py's own calls."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import POINTER, c_void_p, cast
from dataclasses import dataclass, field
from typing import Any

import pynvml
import pytest

SUCCESS, NOT_SUPPORTED, TIMEOUT, NOT_FOUND_FUNCTION, LOST = 0, 3, 10, 13, 15
_HANDLES = 0x1000
_MIB = 1 << 20


@dataclass
class FakeGpu:
    """One card. `codes` maps a function of the library to what it returns instead of success."""

    uuid: str = "GPU-0"
    pci: str = "00000000:3B:00.0"
    sm_mhz: int = 1755
    milliwatts: int = 412_300
    reasons: int = 0x4
    sbe: int = 2
    dbe: int = 0
    rows: tuple[int, int, int, int] = (1, 0, 0, 0)
    fields: dict[int, int] = field(default_factory=dict)
    links: dict[tuple[int, int], int] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)


class FakeDriver:
    """Answers for `gpus`; `install` puts it in the library's place."""

    def __init__(self, gpus: list[FakeGpu], *, absent: frozenset[str] = frozenset()) -> None:
        self.gpus = gpus
        self.absent = absent
        self.init_code = SUCCESS
        self.xids: list[tuple[int, int]] = []
        self.shut_down = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(pynvml, "_LoadNvmlLibrary", lambda: None)
        patch.setattr(pynvml, "_nvmlGetFunctionPointer", self.function)

    def function(self, name: str) -> Callable[..., int]:
        if name in self.absent or not hasattr(self, name):
            raise pynvml.NVMLError(NOT_FOUND_FUNCTION)
        answer = getattr(self, name)

        def call(*arguments: Any) -> int:
            gpu = self._of(arguments[0]) if name.startswith("nvmlDeviceGet") and arguments else None
            code = gpu.codes.get(name, gpu.codes.get("*", SUCCESS)) if gpu else SUCCESS
            if code == SUCCESS:
                code = answer(*arguments) or SUCCESS
            return code

        return call

    def _of(self, handle: Any) -> FakeGpu | None:
        if not isinstance(handle, pynvml.c_nvmlDevice_t):
            return None
        return self.gpus[_address(handle) - _HANDLES]

    def nvmlInitWithFlags(self, flags: int) -> int:
        return self.init_code

    def nvmlShutdown(self) -> None:
        self.shut_down += 1

    def nvmlDeviceGetCount_v2(self, count: Any) -> None:
        count._obj.value = len(self.gpus)

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:
        cast(handle, POINTER(c_void_p))[0] = _HANDLES + index.value
        return self.gpus[index.value].codes.get("nvmlDeviceGetHandleByIndex_v2", SUCCESS)

    def nvmlDeviceGetIndex(self, handle: Any, index: Any) -> None:
        index._obj.value = _address(handle) - _HANDLES

    def nvmlDeviceGetUUID(self, handle: Any, text: Any, length: Any) -> None:
        text.value = self._of(handle).uuid.encode()

    def nvmlDeviceGetPciInfo_v3(self, handle: Any, info: Any) -> None:
        info._obj.busId = self._of(handle).pci.encode()

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: Any, mhz: Any) -> None:
        mhz._obj.value = self._of(handle).sm_mhz if kind.value == pynvml.NVML_CLOCK_SM else 2619

    def nvmlDeviceGetMaxClockInfo(self, handle: Any, kind: Any, mhz: Any) -> None:
        mhz._obj.value = 1980

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: Any, celsius: Any) -> None:
        celsius._obj.value = 61

    def nvmlDeviceGetPowerUsage(self, handle: Any, milliwatts: Any) -> None:
        milliwatts._obj.value = self._of(handle).milliwatts

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: Any, reasons: Any) -> None:
        reasons._obj.value = self._of(handle).reasons

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any, reasons: Any) -> None:
        reasons._obj.value = self._of(handle).reasons

    def nvmlDeviceGetUtilizationRates(self, handle: Any, rates: Any) -> None:
        rates._obj.gpu, rates._obj.memory = 97, 41

    def nvmlDeviceGetMemoryInfo_v2(self, handle: Any, memory: Any) -> None:
        memory._obj.used, memory._obj.free, memory._obj.reserved = 70_000 * _MIB, 10_000 * _MIB, 600 * _MIB

    def nvmlDeviceGetTotalEccErrors(self, handle: Any, kind: Any, counter: Any, count: Any) -> None:
        gpu = self._of(handle)
        count._obj.value = gpu.dbe if kind.value == pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED else gpu.sbe

    def nvmlDeviceGetRemappedRows(self, handle: Any, *rows: Any) -> None:
        for place, value in zip(rows, self._of(handle).rows, strict=True):
            place._obj.value = value

    def nvmlDeviceGetPcieReplayCounter(self, handle: Any, count: Any) -> None:
        count._obj.value = 5

    def nvmlDeviceGetPcieThroughput(self, handle: Any, kind: Any, kilobytes: Any) -> None:
        kilobytes._obj.value = 900 if kind.value == pynvml.NVML_PCIE_UTIL_TX_BYTES else 1200

    def nvmlDeviceGetFieldValues(self, handle: Any, count: Any, values: Any) -> None:
        gpu = self._of(handle)
        for value in values._obj[: count.value]:
            of_link = gpu.links.get((value.fieldId, value.scopeId))
            told = gpu.fields.get(value.fieldId) if of_link is None else of_link
            value.nvmlReturn = NOT_SUPPORTED if told is None else SUCCESS
            value.valueType = pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
            value.value.ullVal = told or 0

    def nvmlEventSetCreate(self, events: Any) -> None:
        cast(events, POINTER(c_void_p))[0] = 0x77

    def nvmlDeviceRegisterEvents(self, handle: Any, kinds: Any, events: Any) -> int:
        return self._of(handle).codes.get("nvmlDeviceRegisterEvents", SUCCESS)

    def nvmlEventSetWait_v2(self, events: Any, event: Any, timeout_ms: Any) -> int:
        if not self.xids:
            return TIMEOUT
        index, code = self.xids.pop(0)
        event._obj.eventType, event._obj.eventData = pynvml.nvmlEventTypeXidCriticalError, code
        event._obj.device = cast(c_void_p(_HANDLES + index), pynvml.c_nvmlDevice_t)
        return SUCCESS


def _address(handle: Any) -> int:
    return cast(handle, c_void_p).value or 0
