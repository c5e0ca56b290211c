"""How many tokens, and how much of its peak, does this GPU deliver?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from train_ledger.signals.flops import flop_per_token, is_quantised, non_data_parallel_size, peak_flops
from train_ledger.signals.line import plain

__all__ = ["Throughput"]


class Throughput:
    """tps, tflops and mfu of a step; `said` is called once with words where a figure cannot be right.

    `peak` is the device's dense peak in FLOP/s where the user gives one; else it is looked up by the device's
    name as soon as CUDA is initialised.
    """

    def __init__(
        self,
        model: Mapping[str, Any] | None,
        parallelism: Mapping[str, Any] | None,
        peak: float | None = None,
        pci: str | None = None,
    ) -> None:
        self._flop_per_token = flop_per_token(model)
        self._sharers = non_data_parallel_size(parallelism)
        self._quantised = is_quantised(model)
        self._pci = pci
        self._peak = peak
        self._looked_up = peak is not None
        self.over_peak: Callable[[str], None] = lambda message: None
        self._said = False

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
        if mfu > 100 and not self._said:
            self._said = True
            self.over_peak(
                f"mfu is {mfu:.0f} %: more than the device can do; check model, parallelism, tokens and peak_flops given to start()"
            )
        return {"tps": tps, "tflops": flops / 1e12, "mfu": mfu}

    def _device_peak(self) -> float | None:
        if not self._looked_up:
            cuda = getattr(sys.modules.get("torch"), "cuda", None)
            if cuda is None or not cuda.is_initialized():
                return None
            self._looked_up = True
            self._peak = peak_flops(cuda.get_device_name(), self._pci)
        return self._peak
