"""What failed in the GPUs of a run, by the raw lines of kernels and readings?

XIDs by the table of levels, each report for itself; uncorrected memory errors and rows that wait to be
remapped, by the counters as they stood; GPUs that were read no more while others of their host were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from train_ledger.config import Alerts, Xid
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.backtest.signs.cards import Card
from train_ledger.dash.backtest.signs.stretches import Grade, stretches
from train_ledger.ledger.hardware.places import host_key
from train_ledger.ledger.xids import level_here

__all__ = ["gpus_lost", "memory_errors", "xids"]

_ONE_EVENT_S = 60.0
_DAY_S = 86_400.0
_SETTLED_S = 120.0
_CLEAR_S = 60.0
_LONGEST_CODE = 100_000
_CODE = "DCGM_FI_DEV_XID_ERRORS"
_DBE = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
_REMAP = "DCGM_FI_DEV_ROW_REMAP_PENDING"


def xids(cards: Sequence[Card], alerts: Alerts, overrides: Xid) -> Iterator[PastIncident]:
    """Reports of level page on GPUs of the run."""
    for card in cards:
        told = {code for _, code in _by_kernel(card, overrides, also_recorded=True)}
        paging = [t for t, _ in _by_kernel(card, overrides)]
        paging += [
            t
            for t, code in _by_dcgm(card)
            if code not in told and level_here(code, overrides=overrides) == "page"
        ]
        for t in sorted(paging):
            if t >= card.since_t:
                yield PastIncident(t, "xid", t + alerts.xid_window_s + alerts.keep_firing_s, card.labels)


def _by_kernel(card: Card, overrides: Xid, *, also_recorded: bool = False) -> Iterator[tuple[float, int]]:
    """(when, code) of each report; a code is counted once a minute."""
    events: dict[int, list[float]] = {}
    for t, fault in card.reports:
        code, text = fault.details.get("code"), fault.details.get("text")
        if not isinstance(code, int):
            continue
        before = events.setdefault(code, [])
        if not before or t - before[-1] >= _ONE_EVENT_S:
            before.append(t)
        else:
            before[-1] = t
        times = sum(t - it < _DAY_S for it in before)
        level = level_here(code, text if isinstance(text, str) else "", times=times, overrides=overrides)
        if level == "page" or also_recorded:
            yield t, code


def _by_dcgm(card: Card) -> Iterator[tuple[float, int]]:
    """(when, code) as the gauge changed; a code that stood there at the first look is of before the run."""
    before: int | None = None
    for t, look in card.looks:
        value = look.values.get(_CODE)
        if value is None or not 0 <= value < _LONGEST_CODE:
            continue
        code = int(value)
        if code and code != before and (before is not None or t >= card.since_t + _SETTLED_S):
            yield t, code
        before = code


def memory_errors(cards: Sequence[Card], alerts: Alerts) -> Iterator[PastIncident]:
    """Uncorrected errors, each for the time of its window, and rows that waited, for as long as they did."""
    for card in cards:
        for t in _counted(card):
            until_t = t + alerts.ecc_window_s + alerts.keep_firing_s
            yield PastIncident(t, "memory_error", until_t, card.labels)
        waits = ((t, Grade(2 * (look.values.get(_REMAP, 0.0) > 0))) for t, look in card.looks)
        for it in stretches(waits):
            yield PastIncident(it.t, "memory_error", it.until_t + alerts.keep_firing_s, card.labels)


def _counted(card: Card) -> Iterator[float]:
    """When the counter was higher than before, or began anew and was not 0."""
    before = 0.0
    for t, look in card.looks:
        value = look.values.get(_DBE)
        if value is not None and value != before and value > 0:
            yield t
        before = before if value is None else value


def gpus_lost(
    cards: Sequence[Card], alerts: Alerts, until_t: float, told: Sequence[PastIncident]
) -> Iterator[PastIncident]:
    """GPUs that are read no more for `gpu_lost_s` and longer while others of the host are.

    Without those of which one of the incidents in `told` says it already.
    """
    newest: dict[str, float] = {}
    for card in cards:
        if card.looks:
            key = host_key(card.host)
            newest[key] = max(card.looks[-1][0], newest.get(key, 0.0))
    for card in cards:
        if not card.looks or any(it.place == card.labels and it.t <= card.looks[-1][0] + 60 for it in told):
            continue
        last_t = card.looks[-1][0]
        gone_s = min(newest[host_key(card.host)], card.left_t) - last_t - alerts.gpu_lost_s
        if gone_s >= 0:
            yield PastIncident(last_t, "gpu_lost", until_t, card.labels, clear=gone_s >= _CLEAR_S)
