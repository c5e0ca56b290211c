"""Which card is this rank's, so that a culprit can be found in the rack?

Asked of torch where CUDA is initialised already, else of the driver's NVML through ctypes, which makes no
CUDA context: start() must not initialise CUDA where the training has not.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["gpu_of"]


def gpu_of(local_rank: int, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """{"gpu", "uuid", "pci", "gpu_name"} as far as they are known; {} where there is no NVIDIA driver.

    `gpu` is the card's number on the host, as nvidia-smi and DCGM count; `pci` is "0000:1b:00.0".
    """
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    chosen = _chosen(visible, _current_device(local_rank))
    if chosen is None:
        return {}
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return {}
    return _ask_nvml(nvml, chosen)


def _current_device(local_rank: int) -> int:
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        return int(cuda.current_device())
    return local_rank


def _chosen(visible: str | None, index: int) -> int | str | None:
    """The card by number or UUID; None where the process may see none, or fewer than it counts.

    >>> _chosen(None, 3), _chosen("4,5", 1), _chosen("GPU-8f3c", 0), _chosen("", 0)
    (3, 5, 'GPU-8f3c', None)
    """
    if visible is None:
        return index
    cards = [card.strip() for card in visible.split(",") if card.strip()]
    if not cards:
        return None
    # A launcher that shows each rank its one card leaves LOCAL_RANK counting the host's.
    card = cards[index] if index < len(cards) else cards[0] if len(cards) == 1 else None
    return int(card) if card is not None and card.isdecimal() else card


class _Pci(ctypes.Structure):
    """nvmlPciInfo_t of nvml.h."""

    _fields_ = [
        ("busIdLegacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("pciDeviceId", ctypes.c_uint),
        ("pciSubSystemId", ctypes.c_uint),
        ("busId", ctypes.c_char * 32),
    ]


def _ask_nvml(nvml: Any, chosen: int | str) -> dict[str, Any]:
    if nvml.nvmlInit_v2() != 0:
        return {}
    try:
        card = ctypes.c_void_p()
        if isinstance(chosen, int):
            failed = nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(chosen), ctypes.byref(card))
        else:
            failed = nvml.nvmlDeviceGetHandleByUUID(chosen.encode(), ctypes.byref(card))
        return {} if failed else _read(nvml, card)
    finally:
        nvml.nvmlShutdown()


def _read(nvml: Any, card: ctypes.c_void_p) -> dict[str, Any]:
    found: dict[str, Any] = {}
    number, text, pci = ctypes.c_uint(), ctypes.create_string_buffer(96), _Pci()
    if nvml.nvmlDeviceGetIndex(card, ctypes.byref(number)) == 0:
        found["gpu"] = number.value
    if nvml.nvmlDeviceGetUUID(card, text, 96) == 0:
        found["uuid"] = text.value.decode(errors="replace")
    if nvml.nvmlDeviceGetPciInfo_v3(card, ctypes.byref(pci)) == 0:
        found["pci"] = f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0"
    if nvml.nvmlDeviceGetName(card, text, 96) == 0:
        found["gpu_name"] = text.value.decode(errors="replace")
    return found
