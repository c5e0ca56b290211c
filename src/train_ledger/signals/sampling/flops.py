"""What part of its peak does the GPU deliver?

MFU = FLOP per token × tokens per second and GPU ÷ the device's dense bf16 peak, with 6N + 12·L·H·Q·T FLOP per
token (N parameters, L layers, H heads of size Q, T tokens of sequence; recomputation is not counted). A
device that is not in the table, or a quantised model, has no MFU: none is better than a guessed one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from train_ledger.signals.harmless.values import detail, positive

__all__ = ["flop_per_token", "is_quantised", "non_data_parallel_size", "peak_flops", "unusable"]

# Dense bf16, from the vendors' data sheets (which often print the figure "with sparsity": twice these).
# The first pattern that matches counts, so the narrower ones stand first.
_PEAKS: tuple[tuple[str, float], ...] = (
    (r"\bGB200\b", 2500e12),  # NVIDIA GB200 NVL72 data sheet: 5 PFLOPS sparse a GPU
    (r"\bB200\b", 2250e12),  # NVIDIA HGX B200 data sheet: 4.5 PFLOPS sparse a GPU
    (r"\bGH200\b", 990e12),  # NVIDIA GH200 data sheet: 1979 TFLOPS sparse, rounded as printed (990)
    (r"\bH200 NVL\b", 835.5e12),  # NVIDIA H200 data sheet: 1671 TFLOPS sparse
    (r"\bH200\b", 989e12),  # NVIDIA H200 data sheet, SXM: 1979 TFLOPS sparse
    (r"\bH100 NVL\b", 835e12),  # NVIDIA H100 data sheet, NVL: 1671 TFLOPS sparse
    (r"\bH100 PCIe\b", 756e12),  # NVIDIA H100 data sheet, PCIe: 1513 TFLOPS sparse
    (r"\bH100\b.*\bHBM3\b|\bH100 SXM", 989e12),  # NVIDIA H100 data sheet, SXM5: 1979 TFLOPS sparse
    (r"\bA100\b", 312e12),  # NVIDIA A100 data sheet: 312 TFLOPS dense
    (r"\bL40S\b", 362e12),  # NVIDIA L40S data sheet: 733 TFLOPS sparse, printed dense as 362.05
    (r"\bMI300X\b", 1307.4e12),  # AMD Instinct MI300X data sheet: 1307.4 TFLOPS dense
    (r"\bMI325X\b", 1307.4e12),  # AMD Instinct MI325X data sheet: 1307.4 TFLOPS dense
    (r"\bMI250X\b", 191.5e12),  # AMD Instinct MI250X data sheet: 383 TFLOPS a card, which is two devices
)

# The name "NVIDIA H100" alone does not tell the form. The PCI device number does, which lspci puts in words.
_H100_BY_PCI_DEVICE = {"0x2330": 989e12, "0x2339": 989e12, "0x2331": 756e12, "0x2321": 835e12}
_QUANTISED = re.compile(r"fp8|float8|int8|fp4|nvfp4|mxfp|e4m3|e5m2", re.IGNORECASE)
_NON_DATA = ("tp", "pp", "cp")
_SHAPE = ("layers", "heads", "head_dim", "seq_len")


def flop_per_token(model: Mapping[str, Any] | None) -> float | None:
    """FLOP to train on one token; None where one of params, layers, heads, head_dim, seq_len is not known.

    `active_params` goes before `params`: a mixture of experts computes with a part of its parameters.

    >>> flop_per_token({"params": 1e9, "layers": 2, "heads": 4, "head_dim": 8, "seq_len": 16})
    6000012288.0
    """
    if not model:
        return None
    params = model.get("active_params", model.get("params"))
    known = [positive(value) for value in (params, *(model.get(key) for key in _SHAPE))]
    figures = [value for value in known if value is not None]
    if len(figures) < len(known):
        return None
    return positive(6.0 * figures[0] + 12.0 * math.prod(figures[1:]))


def unusable(model: Mapping[str, Any] | None, parallelism: Mapping[str, Any] | None) -> list[str]:
    """What is given and is no positive number, and so cannot be reckoned with.

    >>> unusable({"params": "8e9", "layers": 32}, {"tp": 10**400, "order": ["tp"]})
    ['params', 'tp']
    """
    asked = ((model or {}, ("params", "active_params", *_SHAPE)), (parallelism or {}, _NON_DATA))
    return [
        key
        for given, keys in asked
        for key in keys
        if given.get(key) is not None and positive(given.get(key)) is None
    ]


def peak_flops(
    device_name: str, pci: str | None = None, pci_devices: Path = Path("/sys/bus/pci/devices")
) -> float | None:
    """The dense bf16 peak of a device by its name and, for an H100 whose name does not tell, its PCI address.

    >>> peak_flops("NVIDIA H100 80GB HBM3"), peak_flops("NVIDIA H100 PCIe"), peak_flops("NVIDIA GeForce 256")
    (989000000000000.0, 756000000000000.0, None)
    """
    for pattern, peak in _PEAKS:
        if re.search(pattern, device_name, re.IGNORECASE):
            return peak
    if re.search(r"\bH100\b", device_name) and pci:
        try:
            return _H100_BY_PCI_DEVICE.get((pci_devices / pci.lower() / "device").read_text().strip())
        except OSError:
            return None
    return None


def is_quantised(model: Mapping[str, Any] | None) -> bool:
    """True where the model says that it computes in fewer bits than the peak table is for.

    >>> is_quantised({"dtype": "torch.float8_e4m3fn"}), is_quantised({"dtype": "bf16"})
    (True, False)
    """
    if not model:
        return False
    if any(detail(model.get(key)) for key in ("quantized", "quantised", "fp8")):
        return True
    return any(_QUANTISED.search(_word(model.get(key))) for key in ("dtype", "precision", "quantization"))


def _word(dtype: object) -> str:
    return str(dtype if type(dtype).__module__ == "torch" else detail(dtype))


def non_data_parallel_size(parallelism: Mapping[str, Any] | None) -> float | None:
    """How many GPUs work on the same tokens: tp × pp × cp; None where one that is given is no number."""
    size: float | None = 1.0
    for axis in _NON_DATA:
        given = (parallelism or {}).get(axis)
        factor = 1.0 if given is None else positive(given)
        size = None if size is None or factor is None else positive(size * factor)
    return size
