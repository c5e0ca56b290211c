"""Which card is this rank's, so that a culprit can be found in the rack?

Asked of torch where CUDA is initialised already, else of the driver's NVML through ctypes, which makes no
CUDA context: start() must not initialise CUDA where the training has not.
"""

from __future__ import annotations

import os
import struct
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
    return {} if chosen is None else _ask_nvml(chosen)


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


# nvmlPciInfo_t of nvml.h: busIdLegacy, domain, bus, device, pciDeviceId, pciSubSystemId, busId
_PCI_INFO = struct.Struct("16sIIIII32s")
_TEXT_BYTES = 96


def _ask_nvml(chosen: int | str) -> dict[str, Any]:
    import ctypes  # here, since `import train_ledger` is to be quick

    try:
        nvml: Any = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return {}
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


def _read(nvml: Any, card: Any) -> dict[str, Any]:
    import ctypes

    found: dict[str, Any] = {}
    number, text = ctypes.c_uint(), ctypes.create_string_buffer(_TEXT_BYTES)
    pci = ctypes.create_string_buffer(_PCI_INFO.size)
    if nvml.nvmlDeviceGetIndex(card, ctypes.byref(number)) == 0:
        found["gpu"] = number.value
    if nvml.nvmlDeviceGetUUID(card, text, _TEXT_BYTES) == 0:
        found["uuid"] = text.value.decode(errors="replace")
    if nvml.nvmlDeviceGetPciInfo_v3(card, pci) == 0:
        found["pci"] = _address(pci.raw)
    if nvml.nvmlDeviceGetName(card, text, _TEXT_BYTES) == 0:
        found["gpu_name"] = text.value.decode(errors="replace")
    return found


def _address(pci_info: bytes) -> str:
    """
    >>> _address(_PCI_INFO.pack(b"0000:1B:00.0", 0, 0x1B, 0, 0, 0, b"00000000:1B:00.0"))
    '0000:1b:00.0'
    """
    _, domain, bus, device, *_ = _PCI_INFO.unpack(pci_info)
    return f"{domain:04x}:{bus:02x}:{device:02x}.0"
