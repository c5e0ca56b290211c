"""What would Prometheus have said of a day?

The day's facts, each at the time at which it can be read, become what every target would have answered; the
generated rules are evaluated by promtool.
"""

from __future__ import annotations

import time
from dataclasses import replace

from train_ledger.chaos.days.day import Day
from train_ledger.chaos.days.judged import Judged, Noticed, known
from train_ledger.config import Config
from train_ledger.dash.backtest.prometheus import alerts_by_prometheus
from train_ledger.dash.backtest.recording import Recording

__all__ = ["judge_day_by_prometheus"]


def judge_day_by_prometheus(day: Day, config: Config | None = None) -> Judged:
    """Judge a day by the rules file; afterwards `day.truth` is complete.

    For days on which the clock of rank 0's host does not jump. Raises PromtoolError without promtool.
    """
    began_s = time.process_time()
    told = tuple(known(day, it) for it in day.told)
    ended_t = max((it.t for it in told), default=day.start_t)
    recording = Recording(str(day.run_json["run"]), day.run_json, told, ended_t)
    config = config or Config()
    at_once = replace(config, alerts=replace(config.alerts, group_wait_s=0.0))
    alerts = alerts_by_prometheus(recording, at_once, ended_t)
    zero_s = day.clock_of(None).reads(day.start_t) - day.start_t
    noticed = tuple(
        Noticed(t - zero_s, it)
        for it in alerts
        if (t := it.known_t if it.inhibited else it.fired_t) is not None
    )
    return Judged(noticed, len(told), time.process_time() - began_s)
