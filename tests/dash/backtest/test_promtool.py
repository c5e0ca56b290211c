"""What promtool says is read."""

from __future__ import annotations

import shutil

import pytest

from train_ledger.dash.backtest.promtool import PromtoolError, evaluate

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (prometheus)"
)

RULES = """
groups:
  - name: g
    rules:
      - alert: Large
        expr: x > 3
        for: 10s
        labels: {level: page}
        annotations: {summary: 'it is {{ $value }} of "{{ $labels.run }}"'}
"""
ODD = 'a"}, {b\\c\n'


def test_each_evaluation_says_what_fires_then_and_now_and_then_what_it_says() -> None:
    quoted = ODD.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    series = [(f'x{{run="{quoted}"}}', "0+1x3 9+0x20"), ('x{run="quiet"}', "1+0x24")]
    at = [5.0 * number for number in range(25)]
    told = evaluate(RULES, series, at, every_s=5.0, names=["Large"])
    fired = ("Large", (("level", "page"), ("run", ODD)))
    assert set(told.at.values()) == {frozenset({fired})}
    assert sorted(told.at) == [it for it in at if it >= 30]
    assert told.summaries == {fired: [(60.0, f'it is 9 of "{ODD}"'), (120.0, f'it is 9 of "{ODD}"')]}


def test_rules_that_it_does_not_take_are_told_in_one_line() -> None:
    with pytest.raises(PromtoolError) as caught:
        evaluate("groups: 3\n", [], [0.0, 5.0], every_s=5.0, names=[])
    assert "\n" not in str(caught.value)


def test_a_rule_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = 'groups: [{name: g, rules: [{record: y, expr: \'label_replace(x, "run", "", "run", ".*")\'}]}]\n'
    series = [('x{run="a"}', "1 1"), ('x{run="b"}', "1 1")]
    with pytest.raises(PromtoolError):
        evaluate(twice, series, [0.0, 5.0], every_s=5.0, names=[])


def test_where_it_is_not_installed_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PromtoolError, match="promtool is not installed"):
        evaluate(RULES, [], [0.0], every_s=5.0, names=[])
