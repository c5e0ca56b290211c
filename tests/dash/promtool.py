"""Series that promtool replays through the generated rules: one sample each 5 s, from time 0 on."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from train_ledger.config import Alerts
from train_ledger.dash.promql import alerts_yml
from train_ledger.dash.rule import Recording, Rule
from train_ledger.dash.rules import RECORDINGS, RULES

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (prometheus)"
)


def promtool(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr


YES, NO = {"r42"}, set[str]()
Expected = Collection[str] | Collection[Mapping[str, str]]


def series(name: str, values: str, **labels: Any) -> dict[str, str]:
    inner = ",".join(
        f'{key}="{value}"' for key, value in {"run": "r42", "instance": "n0:9466", **labels}.items()
    )
    return {"series": f"{name}{{{inner}}}", "values": values}


def steady(value: float, minutes: float) -> str:
    return f"{value:g}x{round(minutes * 12)}"


def no_number(minutes: float) -> str:
    return " ".join(["NaN"] * round(minutes * 12))


def counting(start: float, minutes: float, by: float = 5) -> str:
    return f"{start:g}+{by:g}x{round(minutes * 12)}"


def node(
    instance: str = "n0:9466",
    *,
    ranks: range = range(2),
    stops: float = 10,
    minutes: float = 30,
    alive: float | None = None,
    skew: float = 0,
    threshold: str | None = None,
    finished: str | None = None,
    restarts: str | None = None,
) -> list[dict[str, str]]:
    """A node whose ranks complete a step each 5 s for `stops` minutes; its exporter lives for `alive`."""
    alive = minutes if alive is None else alive
    moving, standing = min(stops, alive), max(0.0, alive - stops)
    step_t = counting(skew, moving) + (f" {steady(skew + moving * 60, standing)}" if standing else "")
    return [
        series("train_exporter_clock_seconds", counting(skew, alive), instance=instance),
        *(
            series("train_last_step_completed_timestamp_seconds", step_t, instance=instance, rank=rank)
            for rank in ranks
        ),
        series("train_stall_threshold_seconds", threshold or steady(90, alive), instance=instance),
        series("train_run_finished", finished or steady(0, alive), instance=instance),
        series("train_restart_total", restarts or steady(0, alive), instance=instance),
        series("train_run_started_timestamp_seconds", steady(skew + 0.001, alive), instance=instance),
        series("train_attempt_started_timestamp_seconds", steady(skew + 0.001, alive), instance=instance),
    ]


def replay(
    tmp_path: Path,
    input_series: list[dict[str, str]],
    expected: Mapping[str, Expected],
    *,
    rules: tuple[Rule, ...] = RULES,
    alerts: Alerts | None = None,
    sample_s: float = 5,
) -> None:
    """`expected`: for each "ALERT at MINUTE" for what it must fire then: runs, or whole sets of labels.

    Judged as often as `alerts` says: where nothing depends on seconds, seldom.
    """
    alerts = alerts or Alerts()
    names = {key.split(" at ")[0] for key in expected}
    rules = tuple(rule for rule in rules if rule.name in names)
    by_name = {rule.name: rule for rule in rules}
    tests = []
    for key, wanted in expected.items():
        name, minute = key.split(" at ")
        labels = [{"run": it} if isinstance(it, str) else dict(it) for it in wanted]
        told = [{"exp_labels": {**it, "level": by_name[name].level}} for it in labels]
        tests.append({"eval_time": _at(minute), "alertname": name, "exp_alerts": told})
    judged_s = alerts.evaluation_interval_s
    text = alerts_yml(alerts, rules=rules, recordings=_read_by(rule.promql for rule in rules))
    _run(tmp_path, _bare(text), input_series, tests, judged_s, sample_s)


def replay_summary(
    tmp_path: Path,
    input_series: list[dict[str, str]],
    rule: Rule,
    minute: float,
    summary: str,
    labels: Mapping[str, str] | None = None,
) -> None:
    """The alert of the run must fire then with this summary."""
    told = {
        "exp_labels": {"run": "r42", "level": rule.level, **(labels or {})},
        "exp_annotations": {"summary": summary, "runbook_url": f"runbook.md#{rule.runbook}"},
    }
    test = {"eval_time": _at(minute), "alertname": rule.name, "exp_alerts": [told]}
    text = alerts_yml(Alerts(), rules=(rule,), recordings=_read_by([rule.promql, rule.summary]))
    _run(tmp_path, text, input_series, [test])


def recorded(
    tmp_path: Path, input_series: list[dict[str, str]], minute: float, expected: Mapping[str, float | None]
) -> None:
    """What recordings are then, each one sample without a label but `run`; None for none."""
    tests = [
        {
            "expr": f"max by (run) ({name})",
            "eval_time": _at(minute),
            "exp_samples": [] if value is None else [{"labels": '{run="r42"}', "value": value}],
        }
        for name, value in expected.items()
    ]
    text = alerts_yml(Alerts(), rules=(), recordings=_read_by(expected))
    _run(tmp_path, text, input_series, tests, kind="promql_expr_test")


def _at(minute: float | str) -> str:
    return f"{round(float(minute) * 60)}s"


def _read_by(texts: Iterable[str]) -> tuple[Recording, ...]:
    """Those recordings alone on which these texts rest, since promtool computes what it is given."""
    rest = "\n".join(texts)
    wanted = []
    for recording in reversed(RECORDINGS):
        if recording.name in rest:
            wanted.append(recording)
            rest += recording.promql
    return tuple(reversed(wanted))


def _bare(rules: str) -> str:
    """Without the annotations, which promtool would compare too."""
    told = ("annotations:", "summary:", "runbook_url:")
    return "\n".join(line for line in rules.splitlines() if not line.strip().startswith(told))


def _run(
    tmp_path: Path,
    rules: str,
    input_series: list[dict[str, str]],
    tests: list[dict[str, Any]],
    judged_s: float = 5,
    sample_s: float = 5,
    kind: str = "alert_rule_test",
) -> None:
    (tmp_path / "alerts.yml").write_text(rules)
    document = {
        "rule_files": ["alerts.yml"],
        "evaluation_interval": f"{judged_s:g}s",
        "tests": [{"interval": f"{sample_s:g}s", "input_series": input_series, kind: tests}],
    }
    (tmp_path / "test.yml").write_text(json.dumps(document))
    promtool("test", "rules", str(tmp_path / "test.yml"))
