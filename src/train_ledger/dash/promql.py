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

from train_ledger.config import Alerts, Xid
from train_ledger.dash.rule import Group, Recording, Rule
from train_ledger.dash.rules import RECORDINGS, RULES
from train_ledger.ledger.xids import XIDS, level_here

__all__ = ["alerts_yml", "duration", "expression"]


def alerts_yml(
    alerts: Alerts,
    *,
    rules: tuple[Rule, ...] = RULES,
    recordings: tuple[Recording, ...] = RECORDINGS,
    runbook: str = "runbook.md",
    group: str = "train-ledger",
    xids: Xid | None = None,
) -> str:
    """The rules as the text of a Prometheus rules file (YAML).

    `runbook` is the URL of the runbook; each alert's anchor is put after it. `xids` are the levels that the
    user set, for codes that DCGM tells; those of the kernel come with the level that the sidecar gave them.
    """
    lines = ["# Made by train-ledger from its table of rules. Thresholds: train-ledger.toml.", "groups:"]
    for part in _GROUPS:
        those = [it for it in recordings if it.group == part]
        told = [it for it in rules if it.group == part]
        if those or told or part == "run":
            lines += _head_of_group(group, part, alerts)
            for recording in those:
                lines += _recording(recording, alerts)
            for rule in told:
                lines += _alert(rule, alerts, runbook, xids or Xid())
    return "\n".join(lines) + "\n"


_GROUPS: tuple[Group, ...] = ("slow", "run", "hardware")
_SLOW_S = 60.0


def _head_of_group(name: str, part: Group, alerts: Alerts) -> Iterator[str]:
    every_s = alerts.evaluation_interval_s
    yield f"  - name: {json.dumps(name if part == 'run' else f'{name}-{part}')}"
    yield f"    interval: {duration(max(_SLOW_S, every_s) if part == 'slow' else every_s)}"
    yield "    rules:"


def _recording(recording: Recording, alerts: Alerts) -> Iterator[str]:
    yield f"      - record: {recording.name}"
    yield from _block("expr", expression(recording.promql, alerts))


def _alert(rule: Rule, alerts: Alerts, runbook: str, xids: Xid) -> Iterator[str]:
    yield f"      - alert: {rule.name}"
    yield from _block("expr", expression(rule.promql, alerts, xids))
    if hold_s := rule.hold_s(alerts):
        yield f"        for: {duration(hold_s)}"
    if keep_s := rule.keep_s(alerts):
        yield f"        keep_firing_for: {duration(keep_s)}"
    yield "        labels:"
    yield f"          level: {rule.level}"
    yield "        annotations:"
    yield f"          summary: {_quoted(expression(rule.summary, alerts))}"
    yield f"          runbook_url: {_quoted(_literal(f'{runbook}#{rule.runbook}'))}"


def _block(key: str, text: str) -> Iterator[str]:
    yield f"        {key}: |-"
    yield from (f"          {line}" for line in text.splitlines())


def _quoted(text: str) -> str:
    # A JSON string is a YAML string too.
    return json.dumps(text, ensure_ascii=False)


def _literal(text: str) -> str:
    """Of an annotation Prometheus makes a Go template; what is none has no place that is filled in."""
    return text.replace("{{", '{{ "{{" }}')


def expression(template: str, alerts: Alerts, xids: Xid | None = None) -> str:
    """The template with the thresholds filled in: `$name_s` as a number, `$name` as a duration.

    `$xids_paging` and `$xids_ignored` are regular expressions of codes by their levels. Prometheus' own
    `$value` and `$labels` stay as they are.

    >>> expression("x[$loss_window] > $loss_window_s", Alerts())
    'x[10m] > 600'
    """
    known = _placeholders(alerts)
    if "$xids_" in template:
        known |= {f"xids_{name}": _codes(level, xids or Xid()) for name, level in _LEVELS}
    return re.sub(r"\$([a-z_]+)", lambda match: known.get(match[1], match[0]), template)


def _placeholders(alerts: Alerts) -> dict[str, str]:
    known: dict[str, str] = {}
    for field in dataclasses.fields(alerts):
        value = getattr(alerts, field.name)
        known[field.name] = f"{value:.15g}"
        if field.name.endswith("_s"):
            known[field.name.removesuffix("_s")] = duration(value)
    known["lookback"] = duration(_lookback_s(alerts))
    return known


_LEVELS = (("paging", "page"), ("ignored", "ignore"))


def _codes(level: str, xids: Xid) -> str:
    """The codes that have a level whatever else is known of them."""
    codes = {*XIDS, *xids.page, *xids.record, *xids.ignore}
    return (
        "|".join(str(code) for code in sorted(codes) if level_here(code, overrides=xids) == level) or "none"
    )


def _lookback_s(alerts: Alerts) -> float:
    """Longer than any limit of a stall, or a hang would be forgotten before it is paged."""
    return 2 * max(alerts.start_up_limit_s, alerts.evaluation_floor_s, alerts.checkpoint_floor_s, 1800.0)


def duration(seconds: float) -> str:
    """As Prometheus writes it: `90` is `90s`, `600` is `10m`, `0.5` is `500ms`."""
    milliseconds = max(1, round(seconds * 1000))
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds % size == 0 and milliseconds >= size:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"
