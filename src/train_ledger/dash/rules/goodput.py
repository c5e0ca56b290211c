"""Does the run get further for the hours that it takes, and over the data that it should see?"""

from __future__ import annotations

from train_ledger.config import Alerts
from train_ledger.dash.conditions import effective_fraction, recent_data_regresses
from train_ledger.dash.rule import Firing, Recording, Rule
from train_ledger.dash.rules.recordings import of
from train_ledger.dash.rules.words import (
    QUIET_AFTER_THE_END,
    grew,
    of_run,
    place_of_run,
    place_of_run_promql,
)
from train_ledger.ledger.state import RunState

__all__ = ["GOODPUT_RECORDINGS", "GOODPUT_RULES"]


def _effective_time_low(state: RunState, alerts: Alerts) -> list[Firing]:
    fraction = None if state.finished else effective_fraction(state, alerts)
    if fraction is None or fraction >= alerts.effective_fraction:
        return []
    hours = alerts.effective_window_s / 3600
    text = f"{fraction:.0%} of the last {hours:.0f} h went into steps that brought the run further"
    return of_run(state, fraction, text + place_of_run(state))


def _data_position_regressed(state: RunState, alerts: Alerts) -> list[Firing]:
    regresses = [] if state.finished else recent_data_regresses(state, alerts)
    if not regresses:
        return []
    last = regresses[-1]
    text = (
        f"attempt {last.attempt} went on at other data: {last.position} at step {last.step}, was {last.was}"
    )
    return of_run(state, len(regresses), text + place_of_run(state))


_TOTAL = "run_instance:train_productive:seconds"
_SINCE = "run_instance:train_productive_since:timestamp"

_CARRIED = "15m"
"""Longer than a pause between evaluations, and shorter than it is remembered that a run has ended."""

_TOTAL_NOW = """max by (run, instance) (train_productive_seconds_total)
and on (run, instance) train_productive_since_timestamp_seconds
unless on (run, instance) run_instance:train_superseded:attempt"""

_TOTAL_KEPT = f"""last_over_time({_TOTAL}[{_CARRIED}])
unless on (run, instance) run_instance:train_superseded:attempt
unless on (run) (run:train_run_finished:bool == 1)
unless on (run, instance) (
  last_over_time({_TOTAL}[{_CARRIED}]) == {_TOTAL} offset $effective_window
)"""

_SINCE_NOW = """train_productive_since_timestamp_seconds
+ on (instance) group_left () last_over_time(train:clock_offset:seconds[$lookback])"""

GOODPUT_RECORDINGS: tuple[Recording, ...] = (
    # Of exporters that are dead what they said last is carried on, for as long as no other one lives: a run
    # that died with its nodes goes on losing time. What did not grow for a whole window is forgotten.
    Recording(_TOTAL, f"{of('', _TOTAL_NOW)}\nor on (run) {of('', _TOTAL_KEPT)}"),
    Recording(
        _SINCE,
        f"{of('max by (run, instance)', _SINCE_NOW)}\nand on (run, instance) {_TOTAL}\n"
        f"or on (run, instance) (last_over_time({_SINCE}[{_CARRIED}]) and on (run, instance) {_TOTAL})",
    ),
    # What was counted before an exporter began to count anew is no figure to go by. What a launcher says is
    # one where nobody counts.
    Recording(
        "run:train_effective:fraction",
        f"""max by (run) (
  clamp_max(
    (
      {_TOTAL}
      - (
        {_TOTAL} offset $effective_window
          and on (run, instance) abs({_SINCE} - {_SINCE} offset $effective_window) < 60
        or 0 * {_TOTAL}
      )
    )
    / on (run, instance) clamp_max(time() - {_SINCE}, $effective_window_s),
    1
  )
  and on (run, instance) time() - {_SINCE} >= $effective_from_age_s
)
or on (run) (
  max by (run) (train_effective_fraction)
  and on (run) max by (run) (train_effective_fraction offset $effective_from_age)
  unless on (run) {_TOTAL}
)""",
    ),
)

GOODPUT_RULES: tuple[Rule, ...] = (
    Rule(
        name="EffectiveTrainingTimeLow",
        level="page",
        promql="run:train_effective:fraction < $effective_fraction" + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: {{ $value | humanizePercentage }} of the last $effective_window went "
        "into steps that brought the run further" + place_of_run_promql(),
        runbook="effectivetrainingtimelow",
        check=_effective_time_low,
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="DataPositionRegressed",
        level="page",
        # Told for as long as a failed save: either way what the run does from now on may be for nothing.
        promql=f"({grew('train_data_position_regressed_total', '$checkpoint_window')}) > 0"
        + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: after a restart the run went on at other data than it had stood at"
        + place_of_run_promql(),
        runbook="datapositionregressed",
        check=_data_position_regressed,
        keep_firing_for_s="keep_firing_s",
    ),
)
