"""Which rank was slowest, hottest, hungriest, by Megatron's own StragglerDetector?

`… | MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: 3468.20ms/0 | …`: of each quantity the least and the most over all
ranks, and whose it is (megatron/core/README_STRAGGLER.md). Rtt is the time in the traced operations per
iteration, DRtt that of the batch, Etpt an estimate. Power is printed as W and is what torch gives: mW.
"""

from __future__ import annotations

import re
from collections import defaultdict

from train_ledger.sources.formats.pairs import with_unit

__all__ = ["FIELDS_OF_STRAGGLERS", "straggler_report"]

_PAIR = re.compile(r"\bM([nx])(\w{3,4})/Rnk: ([\d.]{1,20} ?[A-Za-z%]{0,3})/(\d{1,7})\b")
_FIELDS = {
    "Rtt": "traced_s",
    "Pwr": "gpu_power_w",
    "Tmp": "gpu_temperature_c",
    "Utl": "gpu_utilization_percent",
    "Clk": "gpu_clock_mhz",
    "DRtt": "data_wait_s",
    "Etpt": "estimated_tflops",
}
FIELDS_OF_STRAGGLERS = frozenset({"data_wait_s"})
_MOST_WATTS = 10_000.0


def straggler_report(text: str) -> dict[int, dict[str, float]]:
    """By global rank the values that the line tells of it; nothing for another line.

    >>> straggler_report("| MnClk/Rnk: 1950MHz/28 | MxClk/Rnk: 1980MHz/0 | MxPwr/Rnk: 683801W/0")
    {28: {'gpu_clock_mhz': 1950.0}, 0: {'gpu_clock_mhz': 1980.0, 'gpu_power_w': 683.801}}
    """
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for match in _PAIR.finditer(text):
        field, number = _FIELDS.get(match[2]), with_unit(match[3])
        if field is not None and number is not None:
            milliwatts = field == "gpu_power_w" and number > _MOST_WATTS
            found[int(match[4])][field] = number / 1e3 if milliwatts else number
    return dict(found)
