"""How do the rules read as a rules file for Prometheus?

`alerts_yml` fills the thresholds of a configuration into the table of `rules` and puts before it the
recordings that the hard conditions rest on. What they hold against:

- an exporter or a node that dies: `last_over_time` remembers for `lookback` what a dead exporter said last;
- clocks that differ between nodes: a node's offset from Prometheus' clock is measured at each scrape, and
  times are compared only after it was added;
- ranks of an earlier attempt, on nodes that the run has left: exporters that speak for another attempt than
  the newest are left out;
- single ranks that still write, or fell silent: the step clock is the median over ranks.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import indent

from train_ledger.config import Alerts
from train_ledger.dash.rule import Rule
from train_ledger.dash.rules import RULES

__all__ = ["RECORDINGS", "Recording", "alerts_yml", "expression"]


@dataclass(frozen=True, slots=True)
class Recording:
    """A series that Prometheus computes first, for alerts to read."""

    name: str
    promql: str


def _of(function: str, *arguments: str) -> str:
    """`function (…)` over several lines, so that the file can be read by whoever is woken by it."""
    inner = ",\n".join(indent(argument, "  ") for argument in arguments)
    return f"{function} (\n{inner}\n)".lstrip()


def _remembered(metric: str) -> str:
    """A metric of the current attempt: of live exporters, and of dead ones as they said it last."""
    dead = f"last_over_time({metric}[$lookback])\nunless on (instance) train_exporter_clock_seconds"
    known = f"{metric}\nor {_of('', dead)}"
    return f"{_of('', known)}\nunless on (run, instance) run_instance:train_superseded:attempt"


def _age_of(metric: str) -> str:
    """Seconds since the time that a metric holds; NaN and 0 are no times."""
    offset = "last_over_time(train:clock_offset:seconds[$lookback])"
    times = _of("", f"{_of('', _remembered(metric))} > 0")
    corrected = f"{times}\n+ on (instance) group_left () {offset}"
    return f"time() - {_of('', corrected)}"


RECORDINGS: tuple[Recording, ...] = (
    Recording(
        "train:clock_offset:seconds",
        """max by (instance) (timestamp(train_exporter_clock_seconds) - train_exporter_clock_seconds)
or on (instance) 0 * max by (instance) (train_stall_threshold_seconds)""",
    ),
    Recording(
        "run_instance:train_superseded:attempt",
        """max by (run, instance) (last_over_time(train_restart_total[$lookback]))
!= on (run) group_left () max by (run) (train_restart_total)""",
    ),
    Recording(
        "run:train_step_age:seconds",
        _of(
            "quantile by (run)",
            "0.5",
            _of("min by (run, rank)", _age_of("train_last_step_completed_timestamp_seconds")),
        )
        + "\nor on (run) "
        + _of("min by (run)", _age_of("train_attempt_started_timestamp_seconds")),
    ),
    Recording(
        "run:train_stall_threshold:seconds",
        _of("max by (run)", _remembered("train_stall_threshold_seconds"))
        + "\nor on (run) 0 * run:train_step_age:seconds + $start_up_limit_s",
    ),
    Recording("run:train_run_finished:bool", _of("max by (run)", _remembered("train_run_finished"))),
    Recording(
        "run:train_run_age:seconds", _of("max by (run)", _age_of("train_run_started_timestamp_seconds"))
    ),
    Recording("run_rank:train_process_up:last", _of("max by (run, rank)", _remembered("train_process_up"))),
)


def alerts_yml(
    alerts: Alerts,
    *,
    rules: tuple[Rule, ...] = RULES,
    runbook: str = "runbook.md",
    group: str = "train-ledger",
) -> str:
    """The rules as the text of a Prometheus rules file (YAML).

    `runbook` is the URL of the runbook; each alert's anchor is put after it.
    """
    lines = [
        "# Made by train-ledger from its table of rules. Thresholds: train-ledger.toml.",
        "groups:",
        f"  - name: {json.dumps(group)}",
        f"    interval: {_duration(alerts.evaluation_interval_s)}",
        "    rules:",
    ]
    for recording in RECORDINGS:
        lines += [f"      - record: {recording.name}", *_block("expr", expression(recording.promql, alerts))]
    for rule in rules:
        lines += _alert(rule, alerts, runbook)
    return "\n".join(lines) + "\n"


def _alert(rule: Rule, alerts: Alerts, runbook: str) -> Iterator[str]:
    yield f"      - alert: {rule.name}"
    yield from _block("expr", expression(rule.promql, alerts))
    if hold_s := rule.hold_s(alerts):
        yield f"        for: {_duration(hold_s)}"
    if keep_s := rule.keep_s(alerts):
        yield f"        keep_firing_for: {_duration(keep_s)}"
    yield "        labels:"
    yield f"          level: {rule.level}"
    yield "        annotations:"
    yield f"          summary: {_quoted(expression(rule.summary, alerts))}"
    yield f"          runbook_url: {_quoted(f'{runbook}#{rule.runbook}')}"


def _block(key: str, text: str) -> Iterator[str]:
    yield f"        {key}: |-"
    yield from (f"          {line}" for line in text.splitlines())


def _quoted(text: str) -> str:
    # A JSON string is a YAML string too.
    return json.dumps(text, ensure_ascii=False)


def expression(template: str, alerts: Alerts) -> str:
    """The template with the thresholds filled in: `$name_s` as a number, `$name` as a duration.

    Prometheus' own `$value` and `$labels` stay as they are.

    >>> expression("x[$loss_window] > $loss_window_s", Alerts())
    'x[10m] > 600'
    """
    known = _placeholders(alerts)
    return re.sub(r"\$([a-z_]+)", lambda match: known.get(match[1], match[0]), template)


def _placeholders(alerts: Alerts) -> dict[str, str]:
    known: dict[str, str] = {}
    for field in dataclasses.fields(alerts):
        value = getattr(alerts, field.name)
        known[field.name] = f"{value:g}"
        if field.name.endswith("_s"):
            known[field.name.removesuffix("_s")] = _duration(value)
    known["lookback"] = _duration(_lookback_s(alerts))
    return known


def _lookback_s(alerts: Alerts) -> float:
    """Longer than any limit of a stall, or a hang would be forgotten before it is paged."""
    return 2 * max(alerts.start_up_limit_s, alerts.evaluation_floor_s, alerts.checkpoint_floor_s, 1800.0)


def _duration(seconds: float) -> str:
    """As Prometheus writes it: `90` is `90s`, `600` is `10m`, `0.5` is `500ms`."""
    milliseconds = max(1, round(seconds * 1000))
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds % size == 0 and milliseconds >= size:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"
