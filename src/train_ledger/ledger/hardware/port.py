"""What do the readings of one network port add up to?

Names as node_exporter's, without their front. A port that was never active is not plugged in, and not down.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from train_ledger.config import Alerts
from train_ledger.facts import HardwareReading
from train_ledger.ledger.hardware.counters import Counter, Usual
from train_ledger.ledger.hardware.records import PortState

__all__ = ["ACTIVE_STATE", "PORT_ERRORS", "RATE", "STATE", "PortFold"]

PORT_ERRORS = (
    "port_errors_received_total",
    "port_receive_remote_physical_errors_total",
    "port_receive_switch_relay_errors_total",
    "port_discards_received_total",
    "port_discards_transmitted_total",
    "port_constraint_errors_received_total",
    "port_constraint_errors_transmitted_total",
    "symbol_error_total",
    "link_downed_total",
    "link_error_recovery_total",
    "local_link_integrity_errors_total",
    "excessive_buffer_overrun_errors_total",
)
"""Counters of which none grows on a link that is well. Those of RoCE's retransmission do, under mere load."""

STATE = "state_id"
ACTIVE_STATE = 4.0
RATE = "rate_bytes_per_second"

_SLOT_S = 60.0
_RATE_SLOT_S = 300.0


class PortFold:
    """The accumulator of one port; all times in it are its host's own."""

    def __init__(self, host: str, device: str, port: int | None) -> None:
        self.host = host
        self.device = device
        self.port = port
        self.reading: HardwareReading | None = None
        self._errors: dict[str, Counter] = {}
        self._rate = Usual(_RATE_SLOT_S, 1)
        self._was_active = False
        self._down_since_t: float | None = None
        self._shown: tuple[float, PortState] | None = None

    def add(self, reading: HardwareReading) -> None:
        """Fold a reading; one that is older than the last is not believed."""
        if self.reading is not None and reading.t < self.reading.t:
            return
        self.reading, self._shown = reading, None
        values = {name: value for name, value in reading.values.items() if math.isfinite(value)}
        for name in PORT_ERRORS:
            if name in values:
                self._errors.setdefault(name, Counter(_SLOT_S)).add(reading.t, values[name])
        if STATE in values:
            self._stand(reading.t, values[STATE] == ACTIVE_STATE)
        if RATE in values:
            self._rate.add(reading.t, values[RATE])

    def _stand(self, t: float, is_active: bool) -> None:
        if is_active:
            self._was_active, self._down_since_t = True, None
        elif self._was_active and self._down_since_t is None:
            self._down_since_t = t

    def shown(self, add_s: float, alerts: Alerts) -> PortState:
        """Windows end with the last reading; `add_s` brings its times onto rank 0's clock."""
        if self._shown is None or self._shown[0] != add_s:
            self._shown = (add_s, self._state(lambda t: t + add_s, alerts))
        return self._shown[1]

    def _state(self, on_zero: Callable[[float], float], alerts: Alerts) -> PortState:
        last = self.reading
        if last is None:
            return PortState(self.host, self.device, self.port)
        grown = {name: it.grown(last.t, alerts.link_window_s) for name, it in self._errors.items()}
        return PortState(
            host=self.host,
            device=self.device,
            port=self.port,
            seen_t=on_zero(last.t),
            values=last.values,
            grown={name: more for name, more in grown.items() if more > 0},
            down_since_t=None if self._down_since_t is None else on_zero(self._down_since_t),
            usual_rate=self._rate.highest,
        )
