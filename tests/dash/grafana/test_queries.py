"""Every panel, annotation and variable of the dashboard gets an answer from a real Prometheus."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from dash.grafana.cluster import cluster
from train_ledger.config import Alerts
from train_ledger.dash.grafana import VARIABLES, queries

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed"),
]

ASKED = dict(queries(Alerts()))
_DEADLINE_S = 240.0


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with cluster(tmp_path_factory.mktemp("cluster")) as client:
        yield client


@pytest.fixture(scope="module")
def answers(prometheus: httpx.Client) -> dict[str, list[dict[str, Any]]]:
    """The last that each query returned; asked until all returned something, or for four minutes."""
    deadline = time.monotonic() + _DEADLINE_S
    told: dict[str, list[dict[str, Any]]] = {}
    while len(told) < len(ASKED) and time.monotonic() < deadline:
        told.update((what, found) for what in ASKED if (found := _ask(prometheus, ASKED[what])))
        time.sleep(1)
    return told


def _ask(client: httpx.Client, promql: str) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/query", params={"query": promql.replace("$run", "r42")}).json()
    assert answer["status"] == "success", f"{promql}: {answer.get('error')}"
    result: list[dict[str, Any]] = answer["data"]["result"]
    return result


@pytest.mark.parametrize("what", sorted(ASKED))
def test_a_query_returns_data(answers: dict[str, list[dict[str, Any]]], what: str) -> None:
    assert answers.get(what), f"{what} says nothing:\n{ASKED[what]}"


def _ask_over_time(client: httpx.Client, promql: str) -> list[dict[str, Any]]:
    asked = {
        "query": promql.replace("$run", "r42"),
        "start": time.time() - 60,
        "end": time.time(),
        "step": 15,
    }
    answer = client.get("/api/v1/query_range", params=asked).json()
    assert answer["status"] == "success", f"{promql}: {answer.get('error')}"
    result: list[dict[str, Any]] = answer["data"]["result"]
    return result


@pytest.mark.usefixtures("answers")
def test_a_query_over_time_returns_data_too(prometheus: httpx.Client) -> None:
    assert [what for what, promql in ASKED.items() if not _ask_over_time(prometheus, promql)] == []


@pytest.mark.usefixtures("answers")
def test_a_heat_map_has_a_row_a_rank_in_the_order_of_numbers(prometheus: httpx.Client) -> None:
    heat = next(promql for what, promql in ASKED.items() if "Own work of each rank" in what)
    rows = [each["metric"]["row"] for each in _ask_over_time(prometheus, heat)]
    assert rows == ["000000", "000001", "000002", "000003"]


def test_a_card_is_drawn_by_host_and_gpu_whatever_dcgm_calls_the_host(
    answers: dict[str, list[dict[str, Any]]],
) -> None:
    clocks = next(what for what in ASKED if what.endswith("SM clock / {{host}} gpu {{gpu}}"))
    cards = {(each["metric"]["host"], each["metric"]["gpu"]) for each in answers[clocks]}
    assert cards == {("node000", "0"), ("node000", "1"), ("node001", "0"), ("node001", "1")}


def test_a_rank_is_where_it_runs_now_and_counts_once(answers: dict[str, list[dict[str, Any]]]) -> None:
    forward = next(what for what in ASKED if "forward, rank" in what)
    assert "left" not in {each["metric"]["host"] for each in answers[forward]}
    assert [it["value"][1] for it in answers["The task / Tokens per second / all GPUs"]] == ["4"]
    assert [
        it["value"][1] for it in answers["The processes, by rank / Life of the processes / ranks alive"]
    ] == ["4"]


@pytest.mark.usefixtures("answers")
def test_labels_of_dcgm_are_put_beside_ours(prometheus: httpx.Client) -> None:
    """Whatever the release calls the host; one that asks another host's engine is where it was scraped."""
    told = [each["metric"] for each in _ask(prometheus, 'DCGM_FI_DEV_SM_CLOCK{gpu="0"}')]
    assert {it["host"] for it in told} == {"node000", "node001", "node007"}
    assert all(it["uuid"] == it["UUID"] for it in told)


def test_of_node_exporter_only_the_network_cards_are_kept(prometheus: httpx.Client) -> None:
    names = prometheus.get("/api/v1/label/__name__/values").json()["data"]
    assert [name for name in names if name.startswith("node_load")] == []
    assert "node_scrape_collector_success" in names


def test_a_variable_offers_the_run(prometheus: httpx.Client) -> None:
    for metric, label in VARIABLES.values():
        found = prometheus.get(f"/api/v1/label/{label}/values", params={"match[]": metric}).json()
        assert found["data"] == ["r42"]


def test_rules_are_evaluated_without_errors(prometheus: httpx.Client) -> None:
    groups = prometheus.get("/api/v1/rules").json()["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] == "err"} == {}
