"""What the script gets is as small as a screen needs it, and says what it stands for."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from dash.page.histories import KEPT, Kept, restarted
from dash.page.views import healthy
from train_ledger.dash.page import RunPage, app
from train_ledger.dash.page.plots import plotly_marker, plotly_script
from train_ledger.facts import HardwareReading
from train_ledger.ledger.history import History


def client(history: Kept | None = KEPT) -> TestClient:
    return TestClient(app(RunPage(healthy, history)), base_url="http://localhost")


def asked(path: str, history: Kept = KEPT) -> Any:
    answer = client(history).get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_each_attempt_is_a_part_and_what_was_done_again_is_marked() -> None:
    answer = asked("/api/history?fields=loss,compute_s")
    assert answer["schema"] == 1
    assert [part["attempt"] for part in answer["attempts"]] == [0, 1]
    assert [part["redone_to"] for part in answer["attempts"]] == [None, 200]
    work = answer["attempts"][0]["curves"]["compute_s"]
    assert (work["low"][0], work["high"][0], work["worst"][0]) == (1.0, 2.0, 5)
    assert answer["fields"]["loss"]["abnormal"]
    assert [mark["name"] for mark in answer["marks"]] == ["run_start", "run_start", "ckpt_failed"]


def test_a_window_has_as_many_points_as_were_asked_for_at_most() -> None:
    answer = asked("/api/history?fields=loss&first=50&last=149&points=60")
    for part in answer["attempts"]:
        assert len(part["steps"]) <= 60
        assert all(48 <= step <= 149 for step in part["steps"])


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("fields=colour", "colour has no history; there are loss"),
        ("first=yesterday", "first is no step: 'yesterday'"),
        ("last=nan", "last is no step"),
        ("points=1e999", "points is no step"),
    ],
)
def test_what_cannot_be_drawn_is_told(query: str, why: str) -> None:
    answer = client().get(f"/api/history?{query}")
    assert answer.status_code == 400
    assert why in answer.text


@pytest.mark.parametrize("query", ["first=-1e300", "last=1e300", "points=-5", "points=1000000", "fields=,,"])
def test_what_is_out_of_range_is_drawn_as_far_as_there_is_something(query: str) -> None:
    assert asked(f"/api/history?{query}")["schema"] == 1


def test_a_run_that_has_told_nothing_has_nothing_to_draw() -> None:
    assert asked("/api/history", Kept(History(), 0.25))["attempts"] == []
    assert asked("/api/history", Kept(History(), 0.25))["read"] == 0.25
    assert asked("/api/strips", Kept(History()))["ranks"] == []


def test_a_sum_that_an_earlier_keeper_let_grow_beyond_any_number_is_not_drawn() -> None:
    history = restarted()
    history.settle()
    for bins in history.curves.values():
        bins.total[:, 1] = np.inf
    history.strips.total[:, 0, 1] = -np.inf
    answer = asked("/api/history?fields=loss", Kept(history))
    assert [part["curves"]["loss"]["mean"][1] for part in answer["attempts"]] == [None, None]
    assert all(
        np.isfinite((it["low"], it["high"])).all() for it in asked("/api/strips", Kept(history))["ranks"]
    )


def test_a_strip_is_a_byte_a_cell_and_names_who_stands_out() -> None:
    (work,) = asked("/api/strips")["ranks"]
    cells = base64.b64decode(work["cells"])
    assert (work["field"], work["rows"], len(cells)) == ("compute_s", 8, 8 * work["columns"])
    rows = [cells[row * work["columns"]] for row in range(8)]
    assert rows == [1, 1, 1, 1, 1, 255, 1, 1]
    assert work["extreme"] == ["5"]


def test_where_all_ranks_are_alike_none_stands_out() -> None:
    (work,) = asked("/api/strips", Kept(restarted(slow=-1)))["ranks"]
    assert work["extreme"] == []
    assert work["high"] > work["low"]
    (clock,) = asked("/api/strips")["gpus"]
    assert clock["names"] == ["n0 0"]


def test_what_is_the_same_everywhere_has_the_colour_of_no_trouble() -> None:
    (work,) = asked("/api/strips", Kept(restarted(slow=-1)))["ranks"]
    assert set(base64.b64decode(work["cells"])) == {1}
    (clock,) = asked("/api/strips")["gpus"]
    assert set(base64.b64decode(clock["cells"])) == {255}
    assert clock["low_is_worse"]
    assert not work["low_is_worse"]


def test_of_many_gpus_the_one_whose_clock_is_low_stands_out() -> None:
    history = History()
    for t in range(50):
        for gpu in range(128):
            clock = {"DCGM_FI_DEV_SM_CLOCK": 900.0 if gpu == 77 else 1980.0}
            history.add_hardware(HardwareReading(1e9 + t, "n0", gpu=gpu, values=clock))
    (strip,) = asked("/api/strips", Kept(history))["gpus"]
    cells = base64.b64decode(strip["cells"])
    rows = {name: cells[row * strip["columns"]] for row, name in enumerate(strip["names"])}
    assert rows.pop("n0 77") == 1
    assert set(rows.values()) == {255}
    assert strip["extreme"] == ["n0 77"]


def test_a_thousand_ranks_are_no_more_than_a_screen_can_show() -> None:
    text = client(Kept(restarted(ranks=1024, steps=60))).get("/api/strips").text
    assert len(text) < 2_000_000
    assert json.loads(text)["ranks"][0]["rows"] == 1024


def test_without_a_history_nothing_is_drawn() -> None:
    assert client(None).get("/api/history").status_code == 404
    assert "plots.js" not in client(None).get("/").text
    assert "plots.js" in client().get("/").text


def test_plotly_is_the_packages_own_and_is_fetched_once() -> None:
    first = client().get("/static/plotly.min.js")
    assert first.content == plotly_script()
    again = client().get("/static/plotly.min.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "no-store" not in first.headers["cache-control"]
    assert plotly_marker() is None or f'id="{plotly_marker()}"' in client().get("/").text
