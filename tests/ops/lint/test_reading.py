"""A person reads each reason once."""

from __future__ import annotations

from train_ledger.ops.lint.checks import lint
from train_ledger.ops.lint.documents import Documents, Query
from train_ledger.ops.lint.exported import Exported
from train_ledger.ops.lint.reading import lines

RUNBOOK = "## A\n## B\n"


def alert(name: str, promql: str) -> Query:
    return Query(name, promql, f"alerts.yml: {name}", runbook_url=f"runbook#{name.lower()}")


def told(*, panels: tuple[Query, ...] = (), alerts: tuple[Query, ...] = ()) -> list[str]:
    documents = Documents(alerts=alerts, panels=panels, runbook=RUNBOOK)
    return lines(lint(documents, Exported({"train_step": frozenset({"run"})})))


def test_what_many_lack_is_explained_once() -> None:
    power, heat = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP"
    said = told(
        alerts=(alert("A", f"{power} > 1"), alert("B", f"{heat} > 1")),
        panels=(Query('"Power"', power, "board.json"), Query('"Power"', heat, "board.json")),
    )
    assert said[:4] == [
        "never   A can never fire",
        f"        lacks {power}",
        "never   B can never fire",
        f"        lacks {heat}",
    ]
    assert said[4] == 'never   panels of which a line or all shows nothing: "Power"'
    assert said[5:7] == ["what is lacking", f"        {power}, {heat}"]
    assert sum("needs dcgm-exporter" in line for line in said) == 1
    assert said[-1].endswith(
        "2 alerts can never fire, 2 panel queries can show nothing, 0 only partly, 0 are wrong"
    )


def test_what_is_worked_out_of_a_field_comes_with_it() -> None:
    said = told(alerts=(alert("A", "train_grad_norm_spike_ratio > 0 or train_grad_norm > 1"),))
    assert "        train_grad_norm_spike_ratio, train_grad_norm" in said
    assert not any("slip in the name" in line for line in said)


def test_what_an_exporter_adds_when_there_is_something_to_say_is_not_missed() -> None:
    said = told(alerts=(alert("A", "train_step_time_recent_seconds > train_step_time_usual_seconds"),))
    assert said == ["1 alerts, 0 panel queries and 0 inhibitions held against 1 metrics: nothing is missing"]
