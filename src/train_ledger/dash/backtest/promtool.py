"""What do the real rules say of these series, as Prometheus itself evaluates them?

`promtool test rules` evaluates a rules file over given series at every interval, `for` and `keep_firing_for`
among it. It is asked of every evaluation which alerts fire, and expected to say "none": what it then says it
got are the alerts. Their annotations are asked for now and then.

promtool evaluates every group at each interval, whatever interval the group has: what Prometheus computes
once a minute is as much as 55 s newer here.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

__all__ = ["Fired", "Firings", "PromtoolError", "evaluate", "promtool"]

_ASKED = 'ALERTS{alertstate="firing"}'
_LOOK_EVERY = 12
_ALWAYS = frozenset({"__name__", "alertname", "alertstate", "paged"})
_LABELS = r'\{((?:[a-zA-Z_]\w*="(?:[^"\\]|\\.)*"(?:, )?)*)\}'
_SERIES = re.compile(rf"{_LABELS} \S+")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_TIME = re.compile(r" time: ([0-9a-z]+),")
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_OF_NO_NEWS = re.compile(r"Unit Testing:|FAILED:|SUCCESS|exp: ?(nil|\[\],?)|got:\[$|\d+:$|\]$")
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))")
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class PromtoolError(Exception):
    """promtool is not there, or does not evaluate these rules; the text says why."""


Fired = tuple[str, tuple[tuple[str, str], ...]]
"""An alert's name and its labels without that name, sorted."""


@dataclass(frozen=True, slots=True)
class Firings:
    """Which alerts fired at each evaluation (by its seconds), and their summaries at some of them."""

    at: Mapping[float, frozenset[Fired]]
    summaries: Mapping[Fired, Sequence[tuple[float, str]]]


def promtool() -> str:
    """The command; raises PromtoolError where it is not installed."""
    found = shutil.which("promtool")
    if found is None:
        raise PromtoolError(
            "promtool is not installed: it comes with prometheus 2.42 and newer; --engine embedded needs none"
        )
    return found


def evaluate(
    rules_yml: str,
    series: Iterable[tuple[str, str]],
    evaluations: Sequence[float],
    *,
    every_s: float,
    names: Iterable[str],
) -> Firings:
    """Evaluate a rules file over series that were scraped `every_s` from 0 on.

    `series` are (name with labels, values as promtool reads them), `evaluations` the seconds at which it is
    asked what fires, `names` the alerts whose summaries are wanted. Raises PromtoolError, and OSError where
    there is no room for the files.
    """
    command = promtool()
    with TemporaryDirectory(prefix="train-ledger-backtest-") as name:
        folder = Path(name)
        (folder / "alerts.yml").write_text(rules_yml)
        with (folder / "test.yml").open("w") as test:
            _write_test(test, series, evaluations, every_s, sorted(names))
        ended = subprocess.run(
            [command, "test", "rules", "test.yml"],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "TMPDIR": name, "HOME": name},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    said = f"{ended.stdout}\n{ended.stderr}"
    if ended.returncode != (1 if "FAILED:" in said else 0):  # killed, say: silence would read as no alert
        raise PromtoolError(
            f"promtool ended with status {ended.returncode} before it had evaluated everything"
        )
    return _read(said)


def _write_test(
    test: IO[str],
    series: Iterable[tuple[str, str]],
    evaluations: Sequence[float],
    every_s: float,
    names: Sequence[str],
) -> None:
    every = _duration(every_s)
    test.write(f"rule_files: [alerts.yml]\nevaluation_interval: {every}\ntests:\n")
    test.write(f" - interval: {every}\n   input_series:\n")
    for name, values in series:
        test.write(f"   - {{series: {json.dumps(name)}, values: {json.dumps(values)}}}\n")
    test.write("   promql_expr_test:\n")
    for at_s in evaluations:
        test.write(f"   - {{expr: {json.dumps(_ASKED)}, eval_time: {_duration(at_s)}}}\n")
    test.write("   alert_rule_test:\n")
    for at_s in evaluations[::_LOOK_EVERY]:
        for name in names:
            test.write(f"   - {{alertname: {json.dumps(name)}, eval_time: {_duration(at_s)}}}\n")


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def _read(said: str) -> Firings:
    at: dict[float, frozenset[Fired]] = {}
    summaries: dict[Fired, list[tuple[float, str]]] = {}
    now_s, labels = 0.0, ""
    for line in said.splitlines():
        text = line.strip()
        if text.startswith(("expr:", "alertname:")):
            now_s = _seconds(line)
        elif text.startswith("got: "):
            at[now_s] = frozenset(_fired(dict(_pairs(it[1]))) for it in _SERIES.finditer(text))
        elif text.startswith("Labels:"):
            labels = text
        elif text.startswith("Annotations:"):
            summary = dict(_pairs(text)).get("summary", "")
            summaries.setdefault(_fired(dict(_pairs(labels))), []).append((now_s, summary))
        elif text and not _OF_NO_NEWS.match(text):
            raise PromtoolError(f"promtool: {text}")
    return Firings(at, summaries)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for name, value in _LABEL.findall(text):
        yield name, _ESCAPE.sub(_unescaped, value)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else _NAMED.get(match[4], match[4])


def _fired(labels: Mapping[str, str]) -> Fired:
    own = {name: value for name, value in labels.items() if name not in _ALWAYS}
    return labels.get("alertname", ""), tuple(sorted(own.items()))


def _seconds(line: str) -> float:
    told = _TIME.search(line)
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(told[1])) if told else 0.0
