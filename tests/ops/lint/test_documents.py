"""What lies in a folder is read as it lies there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from train_ledger.config import Alerts
from train_ledger.dash import RULES
from train_ledger.dash.promql import alerts_yml
from train_ledger.ops.lint import DocumentError, generated, of_folder
from train_ledger.ops.lint.documents import Inhibiting, Query

ALERTMANAGER = """
inhibit_rules:
  - source_matchers: ['alertname=~"GpuXidError|GpuEccDbe"', 'run!=""']
    target_matchers: ['alertname="TrainingStepStalled"', 'run != ""']
    equal: [run]
  - source_matchers: [alertname = GpuXidError]
    target_matchers: [alertname = GpuClockLow, 'host!=""']
    equal: [host]
"""
DASHBOARD = {
    "panels": [
        {"title": "MFU", "targets": [{"expr": 'train_mfu{run="$run"}'}]},
        {
            "title": "Row",
            "panels": [{"title": "Rate", "targets": [{"expr": "rate(x[$__rate_interval])"}, {}]}],
        },
    ]
}


def test_rules_routing_and_dashboards_are_found_wherever_they_lie(tmp_path: Path) -> None:
    (tmp_path / "grafana").mkdir()
    (tmp_path / "alerts.yml").write_text(alerts_yml(Alerts()))
    (tmp_path / "alertmanager.yml").write_text(ALERTMANAGER)
    (tmp_path / "grafana" / "train.json").write_text(json.dumps(DASHBOARD))
    (tmp_path / "grafana" / "other.json").write_text("[1]")
    found = of_folder(tmp_path)
    assert [query.name for query in found.alerts] == [rule.name for rule in RULES]
    assert found.alerts[0].runbook_url == "runbook.md#trainingstepstalled"
    assert found.inhibitions == (
        Inhibiting(("GpuXidError", "GpuEccDbe"), ("TrainingStepStalled",), ("run",), frozenset({"run"}),
                   f"{tmp_path}/alertmanager.yml: inhibition 1"),
        Inhibiting(("GpuXidError",), ("GpuClockLow",), ("host",), frozenset(),
                   f"{tmp_path}/alertmanager.yml: inhibition 2"),
    )  # fmt: skip
    assert [(query.name, query.promql) for query in found.panels] == [
        ('"MFU"', 'train_mfu{run="$run"}'),
        ('"Rate"', "rate(x[5m])"),
    ]


def test_rules_that_lie_there_as_a_kubernetes_resource_too_are_the_same_rules(tmp_path: Path) -> None:
    rule = {
        "alert": "Own",
        "expr": "up == 0",
        "annotations": {"runbook_url": "https://wiki.example.org/r#own"},
    }
    (tmp_path / "alerts.yml").write_text(json.dumps({"groups": [{"rules": [rule]}]}))
    resource = {"kind": "PrometheusRule", "spec": {"groups": [{"rules": [rule]}]}}
    (tmp_path / "rule.yaml").write_text(
        f"{json.dumps(resource)}\n---\n{json.dumps({'kind': 'Service', 'spec': 1})}\n"
    )
    assert len(of_folder(tmp_path).alerts) == 1


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("alerts.yml", "groups: [", "is no YAML"),
        ("alerts.yml", "x: 1", "no file in it has alerting rules"),
        ("board.json", "{", "is no JSON"),
        ("alerts.yml", "!!python/object/apply:os.system [echo]", "is no YAML"),
        ("alerts.yml", "\x00", "is no YAML"),
        ("alerts.yml", "inhibit_rules: [{equal: 3}]", "must be a list of labels"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_file(tmp_path: Path, name: str, content: str, why: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DocumentError, match=why) as caught:
        of_folder(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_aliases_that_stand_for_more_than_any_memory_holds_are_not_written_out(tmp_path: Path) -> None:
    laughs = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    rule = "{alert: X, expr: *a11, annotations: {runbook_url: *a11}}"
    inhibition = "{source_matchers: [*a11], equal: [*a11]}"
    rest = f"groups:\n- rules: [{rule}]\ninhibit_rules: [{inhibition}]\n"
    (tmp_path / "alerts.yml").write_text(f"a0: &a0 [lol]\n{laughs}{rest}")
    found = of_folder(tmp_path)
    assert found.alerts == (Query("X", "", f"{tmp_path}/alerts.yml: X"),)
    assert found.inhibitions[0].sources == ()


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="is no folder"):
        of_folder(tmp_path / "nowhere")


def test_what_this_version_writes_has_every_rule_with_its_labels() -> None:
    documents = generated(Alerts(), "https://wiki.example.org/runbook")
    assert {query.name: query.labels for query in documents.alerts} == {
        rule.name: rule.labels for rule in RULES
    }
    stalled = next(query for query in documents.alerts if query.name == "TrainingStepStalled")
    assert stalled == Query(
        "TrainingStepStalled",
        stalled.promql,
        "rule TrainingStepStalled",
        ("run",),
        "https://wiki.example.org/runbook#trainingstepstalled",
    )
    assert "$" not in stalled.promql
