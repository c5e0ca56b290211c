"""What was usual on a card in the last minutes?

A training card is read in the middle of a step, or between two of them, or in a save: one reading says little
of how it works. Readings of a card that has nothing to do are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median

from train_ledger.ledger.hardware.clocks import SM_CLOCK, is_idle

__all__ = ["FIGURES", "Recent"]

FIGURES = (
    SM_CLOCK,
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_NVLINK_TX_BYTES",
    "DCGM_FI_PROF_NVLINK_RX_BYTES",
)
"""What is compared between cards, by dcgm-exporter's names."""

_WINDOW_S = 300.0
_MOST = 64


class Recent:
    """The readings of one card within the last five minutes, 64 of them at most."""

    __slots__ = ("_readings",)

    def __init__(self) -> None:
        self._readings: deque[tuple[float, tuple[float | None, ...]]] = deque(maxlen=_MOST)

    def add(self, t: float, values: Mapping[str, float]) -> None:
        """A reading at `t`, no older than those before."""
        while self._readings and self._readings[0][0] < t - _WINDOW_S:
            self._readings.popleft()
        if not is_idle(values):
            self._readings.append((t, tuple(map(values.get, FIGURES))))

    def medians(self) -> dict[str, float]:
        """The median of each figure that was told."""
        found: dict[str, float] = {}
        for place, name in enumerate(FIGURES):
            told = [value for _, values in self._readings if (value := values[place]) is not None]
            if told:
                found[name] = median(told)
        return found
