"""Does a card run slower than it should?

It does where the driver names a reason that is trouble – power brake, heat, the card's own emergency
slowdown – or where its SM clock under load is well below what this same card usually runs at. The power cap
and clocks that somebody set are no trouble. An idle card says nothing either way: a checkpoint in the middle
of a hot stretch neither ends it nor makes two of it. Bits: NVML's clocks event reasons (nvml.h).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from train_ledger.config import Alerts
from train_ledger.ledger.hardware.counters import Usual

__all__ = ["ACTIVE", "IDLE_BIT", "REASONS", "SM_CLOCK", "TROUBLE_BITS", "UTIL", "Clocks", "is_idle"]

SM_CLOCK = "DCGM_FI_DEV_SM_CLOCK"
REASONS = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"

IDLE_BIT = 0x1
TROUBLE_BITS: Mapping[int, str] = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}

_LOAD_PERCENT = 50.0
_GAP_S = 120.0
_USUAL_SLOT_S = 300.0
_FEWEST_SLOTS = 6
_EPISODES = 16
_DAY_S = 86_400.0


class Clocks:
    """The clocks of one card, reading by reading."""

    __slots__ = ("_last_t", "_told_t", "_usual", "low_t", "since_t", "why")

    def __init__(self) -> None:
        self._usual = Usual(_USUAL_SLOT_S, _FEWEST_SLOTS)
        self._last_t: float | None = None
        self._told_t: float | None = None
        self.since_t: float | None = None
        self.why = ""
        self.low_t: deque[float] = deque(maxlen=_EPISODES)

    @property
    def usual_mhz(self) -> float | None:
        return self._usual.value

    def add(self, t: float, values: Mapping[str, float], alerts: Alerts) -> None:
        if SM_CLOCK not in values and REASONS not in values:
            return
        if self._last_t is not None and not 0 <= t - self._last_t <= _GAP_S:
            self.since_t = None
        self._last_t = t
        loaded = _is_loaded(values)
        mhz = values.get(SM_CLOCK)
        if loaded and mhz is not None:
            self._usual.add(t, mhz)
        why = _trouble(values) or (self._slow(mhz, alerts) if loaded else "")
        if not why and is_idle(values):
            if self._told_t is None or t - self._told_t > alerts.clock_low_s:
                self.since_t, self.why = None, ""
            return
        self.why, self._told_t = why, t
        if not why:
            self.since_t = None
        elif self.since_t is None:
            self.since_t = t
        if self.since_t is not None and t - self.since_t >= alerts.clock_low_s:
            self._count(self.since_t + alerts.clock_low_s)

    def _slow(self, mhz: float | None, alerts: Alerts) -> str:
        usual = self._usual.value
        if mhz is None or usual is None or mhz >= alerts.clock_low_fraction * usual:
            return ""
        return f"{mhz:.0f} MHz under load where {usual:.0f} is usual"

    def _count(self, began_t: float) -> None:
        """One stretch counts once, when it has lasted."""
        if not self.low_t or self.low_t[-1] < began_t:
            self.low_t.append(began_t)
            while self.low_t[0] <= began_t - _DAY_S:
                self.low_t.popleft()


def _is_loaded(values: Mapping[str, float]) -> bool:
    return values.get(UTIL, 0.0) >= _LOAD_PERCENT or values.get(ACTIVE, 0.0) * 100 >= _LOAD_PERCENT


def is_idle(values: Mapping[str, float]) -> bool:
    """Whether the card is known to have nothing to do."""
    told = values.get(REASONS, 0.0)
    if 0 < told < 1 << 53 and int(told) & IDLE_BIT:
        return True
    return (UTIL in values or ACTIVE in values) and not _is_loaded(values)


def _trouble(values: Mapping[str, float]) -> str:
    told = values.get(REASONS, 0.0)
    if not 0 < told < 1 << 53:
        return ""
    bits = int(told)
    return "" if bits & IDLE_BIT else ", ".join(name for bit, name in TROUBLE_BITS.items() if bits & bit)
