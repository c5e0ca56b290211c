"""Which cards ran too slowly again and again?

By the reasons that the driver names, and by the SM clock under load beside the median of all that was read of
the same card: after the fact its usual clock is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from train_ledger.config import Alerts
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.backtest.signs.cards import Card
from train_ledger.dash.backtest.signs.stretches import Grade, Stretch, grade, stretches
from train_ledger.facts import HardwareReading
from train_ledger.ledger.hardware.clocks import ACTIVE, IDLE_BIT, REASONS, SM_CLOCK, TROUBLE_BITS, UTIL

__all__ = ["clock_low"]

_LOAD_PERCENT = 50.0
_GAP_S = 120.0
_EDGE = 0.05
_CLEAR_S = 60.0
_FEWEST = 30


def clock_low(cards: Sequence[Card], alerts: Alerts) -> Iterator[PastIncident]:
    """The third stretch of a day in which one card's clock was low, and each after it."""
    for card in cards:
        usual = _usual(card)
        looks = ((t, _grade(it, usual, alerts)) for t, it in _gaps_filled(card))
        low = [it for it in stretches(looks, clear_s=alerts.clock_low_s + _CLEAR_S) if _lasted(it, alerts)]
        for place, it in enumerate(low):
            since_t = it.until_t - alerts.clock_low_window_s
            earlier = [one for one in low[:place] if one.until_t > since_t]
            if len(earlier) + 1 >= alerts.clock_low_count:
                clear = it.clear and sum(one.clear for one in earlier) + 1 >= alerts.clock_low_count
                yield PastIncident(
                    it.t, "clock_low", it.until_t + alerts.keep_firing_s, card.labels, clear=clear
                )


def _lasted(it: Stretch, alerts: Alerts) -> bool:
    return it.until_t - it.t >= alerts.clock_low_s * (1 - _EDGE)


def _usual(card: Card) -> float | None:
    loaded = [it.values[SM_CLOCK] for _, it in card.looks if SM_CLOCK in it.values and _is_loaded(it)]
    return median(loaded) if len(loaded) >= _FEWEST else None


def _is_loaded(it: HardwareReading) -> bool:
    values = it.values
    return values.get(UTIL, 0.0) >= _LOAD_PERCENT or 100 * values.get(ACTIVE, 0.0) >= _LOAD_PERCENT


def _grade(it: HardwareReading | None, usual: float | None, alerts: Alerts) -> Grade:
    if it is None:
        return Grade.NO
    reasons = it.values.get(REASONS, 0.0)
    bits = int(reasons) if 0 <= reasons < 1 << 53 else 0
    if not bits & IDLE_BIT and any(bits & bit for bit in TROUBLE_BITS):
        return Grade.CLEAR
    mhz = it.values.get(SM_CLOCK)
    if mhz is None or usual is None or not _is_loaded(it):
        return Grade.NO
    limit = alerts.clock_low_fraction * usual
    return grade(mhz, clear=limit * (1 - _EDGE), edge=limit * (1 + _EDGE))


def _gaps_filled(card: Card) -> Iterator[tuple[float, HardwareReading | None]]:
    """The looks that tell of clocks, and between those that lie far apart one at nothing."""
    before_t: float | None = None
    for t, it in card.looks:
        if SM_CLOCK in it.values or REASONS in it.values:
            if before_t is not None and t - before_t > _GAP_S:
                yield before_t, None
            yield t, it
            before_t = t
