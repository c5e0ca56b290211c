"""How many tokens, and how much of its peak, does this GPU deliver?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from train_ledger.signals.flops import flop_per_token, is_quantised, non_data_parallel_size, peak_flops
from train_ledger.signals.line import plain

__all__ = ["Throughput"]


class Throughput:
    """tps, tflops and mfu of a step; `warn(about, message)` is called once for an mfu that cannot be right.

    `peak` is the device's dense peak in FLOP/s: as the user gave it, else by the name of the device, which is
    asked of torch once CUDA is initialised where it was not known before; None while it is not known.
    """

    def __init__(
        self,
        model: Mapping[str, Any] | None,
        parallelism: Mapping[str, Any] | None,
        peak: float | None = None,
        device: str | None = None,
        pci: str | None = None,
    ) -> None:
        self._flop_per_token = flop_per_token(model)
        self._sharers = non_data_parallel_size(parallelism)
        self._quantised = is_quantised(model)
        self._pci = pci
        self._device_known = peak is not None or device is not None
        self.peak = peak_flops(device, pci) if peak is None and device is not None else peak
        self.warn: Callable[[str, str], None] = lambda about, message: None
        self._warned = False

    def fields(self, tokens: float, step_time_s: float) -> dict[str, float]:
        """The fields that can be known; `tokens` are those of this rank's data-parallel share of the step."""
        count = plain(tokens)
        if count is None or step_time_s <= 0:
            return {}
        tps = count / (step_time_s * self._sharers)
        if self._flop_per_token is None:
            return {"tps": tps}
        flops = self._flop_per_token * tps
        peak = None if self._quantised else self._device_peak()
        if not peak:
            return {"tps": tps, "tflops": flops / 1e12}
        mfu = 100 * flops / peak
        if mfu > 100 and not self._warned:
            self._warned = True
            self.warn(
                "mfu",
                f"mfu is {mfu:.0f} %, more than the device can do: check model, parallelism and peak_flops "
                "given to start(), and the tokens given to step()",
            )
        return {"tps": tps, "tflops": flops / 1e12, "mfu": mfu}

    def _device_peak(self) -> float | None:
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if not self._device_known and cuda is not None and cuda.is_initialized():
            self._device_known = True
            self.peak = peak_flops(cuda.get_device_name(), self._pci)
        return self.peak
