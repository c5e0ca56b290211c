"""The table of panels, the dashboard and the page that are made of it."""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dash.grafana import rich_run
from train_ledger.config import Alerts, Config
from train_ledger.dash.deploy import COUNTERS
from train_ledger.dash.exporter import Exporter
from train_ledger.dash.grafana import ANNOTATIONS, ROWS, DashboardError, dashboard_json, panels_md, queries
from train_ledger.dash.promql import alerts_yml
from train_ledger.fields import FIELDS, Field
from train_ledger.run_dir import RunDir

ROOT = Path(__file__).parents[3]
PANELS = [panel for row in ROWS for panel in row.panels]
ASKED = dict(queries(Alerts()))

Dashboard = pytest.importorskip("grafana_foundation_sdk.models.dashboard").Dashboard


@pytest.fixture(scope="module")
def board() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(dashboard_json(Alerts(), runbook="https://wiki/runbook"))
    return content


def test_there_are_the_four_rows_of_the_seed_article() -> None:
    assert [row.title for row in ROWS] == [
        "The task",
        "The processes, by rank",
        "The hardware, by host and GPU",
        "Events",
    ]


# What the seed article's chapter 8 asks for, row by row.
ASKED_FOR = (
    "train_step", "run:train_step_age:seconds", "train_loss", "train_grad_norm", "train_mfu",
    "train_mfu_baseline", "train_tflops", "train_step_time_s", "train_tps", "train_ckpt_duration_s",
    "train_ckpt_failed_total", "train_effective_fraction",
    "train_step_time_seconds_p50", "train_span_seconds", "train_mem_reserved_peak",
    "train_mem_allocated_peak", "train_mem_inactive_split", "train_num_alloc_retries_total",
    "train_data_wait_s",
    "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_DEV_XID_ERRORS", "train_xid_total",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ROW_REMAP_PENDING",
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_PROF_NVLINK_TX_BYTES", "ALERTS",
)  # fmt: skip


@pytest.mark.parametrize("metric", ASKED_FOR)
def test_every_figure_of_the_seed_article_is_drawn(metric: str) -> None:
    assert metric in _named(" ".join(ASKED.values()))


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.name)
def test_every_field_of_a_signal_line_is_drawn(field: Field) -> None:
    assert field.metric in _named(" ".join(ASKED.values()))


def _named(promql: str) -> set[str]:
    """Metrics: what has the shape of one of ours, of DCGM's, of node_exporter's or of a recording."""
    shape = r"\b(?:train_[a-z0-9_]+|DCGM_[A-Z0-9_]+|node_[a-z_]+|ALERTS|[a-z_]+:train_[a-z_]+:[a-z]+)\b"
    return set(re.findall(shape, re.sub(r'"[^"]*"', '""', promql)))


def test_every_metric_is_exported_recorded_or_in_the_counters_of_dcgm(tmp_path: Path) -> None:
    run_dir, now = RunDir(tmp_path / "r42"), time.time()
    rich_run.write_history(run_dir, now)
    exporter = Exporter(run_dir, Config(), clock=lambda: now)
    while not exporter.poll():
        pass
    exported = set(re.findall(r"^(\w+)", exporter.metrics() or "", re.MULTILINE))
    exporter.close()
    recorded = set(re.findall(r"record: (\S+)", alerts_yml(Alerts())))
    fields = {counter.field for counter in COUNTERS if not counter.since}
    ports = set(re.findall(r"^(node_\w+)", rich_run.node_text(), re.MULTILINE))
    known = exported | recorded | fields | ports | {"ALERTS"}
    assert {what: left for what, q in ASKED.items() if (left := _named(q) - known)} == {}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_a_panel_says_what_to_see_and_asks_for_one_run(panel: Any) -> None:
    assert panel.why.endswith(".")
    assert panel.unit
    assert all('run="$run"' in line.promql for line in panel.lines)
    assert len({line.legend for line in panel.lines}) == len(panel.lines)


def test_titles_are_told_apart() -> None:
    assert len({panel.title for panel in PANELS}) == len(PANELS)


def test_step_times_are_compared_over_time_and_not_over_ranks() -> None:
    asked = [query for what, query in ASKED.items() if "Step time, p95" in what or "p95 of 10 min" in what]
    assert len(asked) == 2
    assert all("quantile_over_time(0.95, max by (run) (train_step_time_s" in query for query in asked)


def test_a_rank_without_a_finite_loss_does_not_hide_the_others() -> None:
    means = [query for what, query in ASKED.items() if what.startswith("The task / Loss / mean")]
    assert means == ['avg by (run) ((train_loss{run="$run"} > -Inf) < Inf)']


# -- the dashboard


def test_panels_stand_side_by_side_within_the_width(board: dict[str, Any]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken.get((x, y))}"
                taken[x, y] = panel["title"]


def test_every_panel_asks_the_chosen_data_source(board: dict[str, Any]) -> None:
    drawn = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len(drawn) == len(PANELS)
    for panel in drawn:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
    assert [it["name"] for it in board["templating"]["list"]] == ["datasource", "run"]


def test_the_sdk_reads_it_back(board: dict[str, Any]) -> None:
    read = Dashboard.from_json(board)
    assert [panel.title for panel in read.panels or ()] == [panel["title"] for panel in board["panels"]]


def test_numbers_of_panels_are_told_apart(board: dict[str, Any]) -> None:
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_panels_link_to_the_runbook(board: dict[str, Any]) -> None:
    step = next(panel for panel in board["panels"] if panel["title"] == "Step")
    assert "https://wiki/runbook#trainingstepstalled" in [link["url"] for link in step["links"]]


def test_thresholds_are_those_of_the_configuration(board: dict[str, Any]) -> None:
    other = json.loads(dashboard_json(replace(Alerts(), data_wait_fraction=0.2, mfu_degraded_fraction=0.7)))
    assert [_steps(it, "Waiting for data, longest")[-1]["value"] for it in (board, other)] == [0.05, 0.2]
    assert [("0.85 *" in _text(it, "MFU"), "0.7 *" in _text(it, "MFU")) for it in (board, other)] == [
        (True, False),
        (False, True),
    ]


def _panel(board: dict[str, Any], title: str) -> dict[str, Any]:
    return next(panel for panel in board["panels"] if panel["title"] == title)


def _steps(board: dict[str, Any], title: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = _panel(board, title)["fieldConfig"]["defaults"]["thresholds"]["steps"]
    return steps


def _text(board: dict[str, Any], title: str) -> str:
    return json.dumps(_panel(board, title)["targets"])


def test_annotations_lie_over_the_first_row_alone(board: dict[str, Any]) -> None:
    first = [panel["id"] for panel in board["panels"][1 : 1 + len(ROWS[0].panels)]]
    said = board["annotations"]["list"]
    assert [it["name"] for it in said] == [it.title for it in ANNOTATIONS]
    assert all(it["filter"] == {"exclude": False, "ids": first} for it in said)
    assert {it["name"] for it in said if it["useValueForTime"]} == {"Attempts", "Checkpoints"}


def test_without_the_sdk_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grafana_foundation_sdk.cog.encoder", None)
    with pytest.raises(DashboardError, match=r"pip install 'train-ledger\[deploy\]'"):
        dashboard_json(Alerts())


# -- the page


def test_the_page_of_the_panels_is_current() -> None:
    page = (ROOT / "docs" / "panels.md").read_text()
    assert page == panels_md(Alerts()), "run `python tools/panels_page.py`"


def test_every_panel_and_annotation_has_a_section(tmp_path: Path) -> None:
    page = panels_md(Alerts())
    for title in [*(panel.title for panel in PANELS), *(it.title for it in ANNOTATIONS)]:
        assert f"\n### {title}\n" in page
