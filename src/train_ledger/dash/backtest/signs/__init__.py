"""What went wrong in a recorded run, by what was said and read, after the fact?

Measures of their own: none asks the run's state or a condition of the alerts, so that an alert that is wrong
is not called right by itself. Thresholds are those of the configuration, and what lies close to one is at the
edge: there neither a page nor its absence is a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from train_ledger.config import Config
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.backtest.recording import Recording
from train_ledger.dash.backtest.signs.cards import cards_of
from train_ledger.dash.backtest.signs.clocks import clock_low
from train_ledger.dash.backtest.signs.effective import effective_low
from train_ledger.dash.backtest.signs.gpus import gpus_lost, memory_errors, xids
from train_ledger.dash.backtest.signs.lines import Lines
from train_ledger.dash.backtest.signs.positions import data_position
from train_ledger.dash.backtest.signs.saves import saves_missing, saves_slow
from train_ledger.dash.backtest.signs.silence import hosts_silent, processes_gone
from train_ledger.dash.backtest.signs.speed import mfu_low, slower
from train_ledger.fields import read_number

__all__ = ["signs_in"]

_NO_TIME_LEFT_S = 30.0


def signs_in(recording: Recording, config: Config, since_t: float, until_t: float) -> list[PastIncident]:
    """The incidents of a run between these times, by what was known until then; by time.

    Without standstills, restart loops, losses and failed saves, which `Happened` reads off the states. A kind
    whose incidents meet on one card or host is one incident.
    """
    lines = Lines(recording.known, until_t)
    found = _joined(sorted(_all(lines, recording, config), key=lambda it: it.t))
    over_t = min(until_t, lines.ended_t())
    return [
        replace(it, clear=it.clear and since_t <= it.t <= over_t - _NO_TIME_LEFT_S)
        for it in found
        if it.until_t >= since_t and it.t < over_t
    ]


def _all(lines: Lines, recording: Recording, config: Config) -> Iterator[PastIncident]:
    alerts = config.alerts
    if not lines.attempts:
        return
    baseline = read_number(recording.run_json.get("mfu_baseline"))
    yield from slower(lines, alerts)
    yield from mfu_low(lines, alerts, baseline)
    yield from effective_low(lines, alerts, lines.began_t)
    yield from data_position(lines, alerts)
    yield from saves_slow(lines, alerts)
    yield from saves_missing(lines, alerts)
    cards = cards_of(lines)
    told = list(xids(cards, alerts, config.xid))
    yield from told
    yield from memory_errors(cards, alerts)
    yield from gpus_lost(cards, alerts, min(lines.until_t, lines.ended_t()), told)
    yield from clock_low(cards, alerts)
    if not recording.by_logs:
        yield from processes_gone(lines, alerts)
        yield from hosts_silent(lines, alerts)


def _joined(found: Iterable[PastIncident]) -> list[PastIncident]:
    joined: list[PastIncident] = []
    open_at: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
    for it in found:
        key = (it.kind, frozenset(it.place.items()))
        place = open_at.get(key)
        if place is not None and it.t <= joined[place].until_t:
            before = joined[place]
            joined[place] = replace(
                before, until_t=max(before.until_t, it.until_t), clear=before.clear or it.clear
            )
        else:
            open_at[key] = len(joined)
            joined.append(it)
    return joined
