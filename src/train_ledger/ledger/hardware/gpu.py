"""What do the readings of one GPU add up to?"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from train_ledger.config import Alerts, Xid
from train_ledger.facts import HardwareReading
from train_ledger.ledger.hardware.clocks import Clocks
from train_ledger.ledger.hardware.counters import Counter
from train_ledger.ledger.hardware.recent import Recent
from train_ledger.ledger.hardware.records import GpuState, XidState
from train_ledger.ledger.xids import level_here

__all__ = ["DBE", "LINK_ERRORS", "REMAP_PENDING", "SBE", "XID", "GpuFold"]

DBE = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
SBE = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
REMAP_PENDING = "DCGM_FI_DEV_ROW_REMAP_PENDING"
XID = "DCGM_FI_DEV_XID_ERRORS"
PCIE_REPLAYS = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"
LINK_ERRORS = (
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
)

_LINK_SLOT_S, _SBE_SLOT_S = 60.0, 600.0
_LARGEST_CODE = 100_000
_CODES = 16
_SETTLED_S = 120.0
"""A code that stands there at the first look is of before the run, unless the run is older than this."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A code that DCGM began to tell; `at_once` where it stood there at the first look."""

    code: int
    t: float
    at_once: bool


class GpuFold:
    """The accumulator of one GPU; all times in it are its host's own."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.gpu: int | None = None
        self.uuid: str | None = None
        self.pci: str | None = None
        self.reading: HardwareReading | None = None
        self.readings = 0
        self._clocks = Clocks()
        self._sbe = Counter(_SBE_SLOT_S)
        self._dbe: float | None = None
        self._dbe_t: float | None = None
        self._links: dict[str, Counter] = {}
        self._replays = Counter(_LINK_SLOT_S)
        self._code: int | None = None
        self._told: deque[_Told] = deque(maxlen=_CODES)
        self._recent = Recent()

    @property
    def read_t(self) -> float:
        """The newest reading, by its host's clock; -inf before the first."""
        return -math.inf if self.reading is None else self.reading.t

    def add(self, reading: HardwareReading, alerts: Alerts) -> None:
        """Fold a reading; one that is older than the last is not believed."""
        if self.reading is not None and reading.t < self.reading.t:
            return
        self.readings += 1
        self.gpu = self.gpu if reading.gpu is None else reading.gpu
        self.uuid, self.pci = reading.uuid or self.uuid, reading.pci or self.pci
        self.reading = reading
        values = {name: value for name, value in reading.values.items() if math.isfinite(value)}
        self._clocks.add(reading.t, values, alerts)
        self._recent.add(reading.t, values)
        if SBE in values:
            self._sbe.add(reading.t, values[SBE])
        if DBE in values:
            self._count_dbe(reading.t, values[DBE])
        for name in LINK_ERRORS:
            if name in values:
                self._links.setdefault(name, Counter(_LINK_SLOT_S)).add(reading.t, values[name])
        if PCIE_REPLAYS in values:
            self._replays.add(reading.t, values[PCIE_REPLAYS])
        if XID in values and 0 <= values[XID] < _LARGEST_CODE:
            self._hear_code(reading.t, int(values[XID]))

    def _count_dbe(self, t: float, value: float) -> None:
        """The count since the driver was loaded: what it begins with has not been mended since."""
        if value > (self._dbe or 0.0) or (self._dbe is not None and 0 < value < self._dbe):
            self._dbe_t = t
        self._dbe = value

    def _hear_code(self, t: float, code: int) -> None:
        if code and code != self._code:
            self._told.append(_Told(code, t, self._code is None))
        self._code = code

    def shown(self, on_zero: Callable[[float], float], alerts: Alerts) -> GpuState:
        """Without the ranks, and without XIDs; windows end with the last reading."""
        last = self.reading
        if last is None:
            return GpuState(self.host)
        grown = {name: it.grown(last.t, alerts.link_window_s) for name, it in self._links.items()}
        clocks = self._clocks
        return GpuState(
            host=self.host,
            gpu=self.gpu,
            uuid=self.uuid,
            pci=self.pci,
            by=last.by,
            seen_t=on_zero(last.t),
            values=last.values,
            dbe_t=None if self._dbe_t is None else on_zero(self._dbe_t),
            sbe_grown=self._sbe.grown(last.t, alerts.ecc_sbe_window_s),
            links_grown={name: more for name, more in grown.items() if more > 0},
            replays_grown=self._replays.grown(last.t, alerts.link_window_s),
            low_since_t=None if clocks.since_t is None else on_zero(clocks.since_t),
            low_why=clocks.why,
            usual_mhz=clocks.usual_mhz,
            low_t=tuple(map(on_zero, clocks.low_t)),
            recent=self._recent.medians(),
        )

    def xids(self, since_t: float, on_zero: Callable[[float], float], overrides: Xid) -> Iterator[XidState]:
        """What DCGM told since `since_t`, when the run came here; a gauge does not say how often."""
        newest: dict[int, _Told] = {}
        for told in self._told:
            if told.t >= since_t + (_SETTLED_S if told.at_once else 0.0):
                newest[told.code] = told
        for code, told in sorted(newest.items()):
            t = on_zero(told.t)
            yield XidState(code, level_here(code, overrides=overrides), 1, t, t, by="dcgm")
