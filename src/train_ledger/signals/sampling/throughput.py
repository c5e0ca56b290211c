"""How many tokens, and how much of its peak, does this GPU deliver?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from train_ledger.signals.harmless.values import plain, positive
from train_ledger.signals.sampling.flops import (
    flop_per_token,
    is_quantised,
    non_data_parallel_size,
    peak_flops,
    unusable,
)

__all__ = ["Throughput"]


_MOST_TOKENS = 1 << 60


class Throughput:
    """tps, tflops and mfu of a step; `warn(about, message)` is called once for an mfu that cannot be right.

    `refused` names the figures that were given and are no positive numbers; what needs them is left out.

    `peak` is the device's dense peak in FLOP/s: as the user gave it, else by the name of the device, which is
    asked of torch once CUDA is initialised where it was not known before; None while it is not known.
    """

    def __init__(
        self,
        model: Mapping[str, Any] | None,
        parallelism: Mapping[str, Any] | None,
        peak: object = None,
        device: str | None = None,
        pci: str | None = None,
    ) -> None:
        self._flop_per_token = flop_per_token(model)
        self._sharers = non_data_parallel_size(parallelism)
        self._quantised = is_quantised(model)
        self._pci = pci
        given = positive(peak)
        self.refused = unusable(model, parallelism)
        if peak is not None and given is None:
            self.refused.append("peak_flops")
        self._device_known = given is not None or device is not None
        self.peak = peak_flops(device, pci) if given is None and device is not None else given
        self.warn: Callable[[str, str], None] = lambda about, message: None
        self._warned = False

    def fields(self, tokens: float, step_time_s: float) -> dict[str, float]:
        """The fields that can be known; `tokens` are those of this rank's data-parallel share of the step."""
        known = type(tokens) is int and 0 < tokens < _MOST_TOKENS
        count = tokens if known else 0.0 if plain(tokens) == 0 else positive(tokens)
        if count is None:
            self._warn_once(
                f"tokens given to step() are a {type(tokens).__name__} that is no positive number within a "
                "float's range, so tps, tflops and mfu are left out of its line"
            )
        gpu_s = step_time_s * (self._sharers or 0)
        if count is None or gpu_s <= 0:
            return {}
        tps = count / gpu_s
        if self._flop_per_token is None:
            return {"tps": tps}
        flops = self._flop_per_token * tps
        peak = None if self._quantised else self._device_peak()
        if not peak:
            return {"tps": tps, "tflops": flops / 1e12}
        mfu = 100 * flops / peak
        if mfu > 100:
            self._warn_once(
                f"mfu is {mfu:.3g} %, more than the device can do: check model, parallelism and peak_flops "
                "given to start(), and the tokens given to step()"
            )
        return {"tps": tps, "tflops": flops / 1e12, "mfu": mfu}

    def _warn_once(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            self.warn("mfu", message)

    def _device_peak(self) -> float | None:
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if not self._device_known and cuda is not None and cuda.is_initialized():
            self._device_known = True
            self.peak = peak_flops(cuda.get_device_name(), self._pci)
        return self.peak
