"""Writes docs/alerts.md from the tables of rules and of what silences what.

python tools/alerts_page.py            writes it
python tools/alerts_page.py --check    says by its exit status whether it is current

tools/pages/alerts.md has the words; level, labels, links, how long an alert stays and every number come from
the rules and the thresholds.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator

from page import DOCS, WORDS, table, write_or_check

from train_ledger.config import Alerts
from train_ledger.dash import RULES
from train_ledger.dash.rule import Rule
from train_ledger.dash.rules import INHIBITIONS

PAGE = DOCS / "alerts.md"

_RUNBOOK = "runbook.md"
_ROWS = re.compile(r"\| alert \| fires where \|\n\| --- \| --- \|\n((?:\|.*\n)+)")
_HEAD = ("alert", "level", "labels", "fires where", "is over after")


class Shown:
    """A threshold as the page shows it: seconds as a span of time, a share as percent where asked for.

    >>> f"{Shown('stall_floor_s', 90.0)}, {Shown('stall_factor', 3.0)}, {Shown('outlier_share', 0.8):%}"
    '90 s, 3, 80 %'
    """

    def __init__(self, name: str, value: float) -> None:
        self._name, self._value = name, value

    def __format__(self, how: str) -> str:
        if how == "%":
            return f"{100 * self._value:g} %"
        return _span(self._value) if self._name.endswith("_s") else f"{self._value:g}"


def page(alerts: Alerts | None = None) -> str:
    """The whole page, with these thresholds in it; the defaults where none are given.

    Raises KeyError for words about a rule or a threshold that is none.
    """
    alerts = alerts or Alerts()
    numbers = {it.name: Shown(it.name, getattr(alerts, it.name)) for it in dataclasses.fields(alerts)}
    head = ("while one of these holds", "these are told to nobody", "where these labels are equal")
    text = (WORDS / "alerts.md").read_text(encoding="utf-8")
    text = text.format(silences=table(head, _silences()), **numbers)
    return _ROWS.sub(lambda found: table(_HEAD, _rows(found[1], alerts)), text)


def _rows(words: str, alerts: Alerts) -> Iterator[tuple[str, ...]]:
    rules = {rule.name: rule for rule in RULES}
    for name, fires_where in re.findall(r"^\| (\w+) \| (.*) \|$", words, re.MULTILINE):
        yield _row(rules[name], fires_where, alerts)


def _row(rule: Rule, fires_where: str, alerts: Alerts) -> tuple[str, ...]:
    keeps_s = rule.keep_s(alerts)
    link = f"[{rule.name}]({_RUNBOOK}#{rule.runbook})"
    return link, rule.level, ", ".join(rule.labels), fires_where, _span(keeps_s) if keeps_s else "at once"


def _silences() -> Iterator[tuple[str, str, str]]:
    for it in INHIBITIONS:
        yield ", ".join(sorted(it.sources)), ", ".join(sorted(it.targets)), ", ".join(it.equal)


def _span(seconds: float) -> str:
    """
    >>> _span(90), _span(600), _span(3600), _span(86400)
    ('90 s', '10 min', '60 min', '24 h')
    """
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
