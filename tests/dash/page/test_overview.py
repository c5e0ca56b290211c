"""Several runs stand on one page, those in trouble first, and each has its own."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest
from starlette.testclient import TestClient

from dash.page.views import HOSTILE, healthy, hung
from dash.test_exposition import parsed
from train_ledger.dash.page import PageView, RunPage, app, serve
from train_ledger.dash.page.overview import together


def named(view: PageView, run: str) -> PageView:
    return replace(view, state=replace(view.state, run=run))


def client(*views: PageView) -> TestClient:
    pages = [RunPage(lambda view=view: view) for view in views]  # type: ignore[misc]
    return TestClient(app(*pages), base_url="http://localhost")


def test_the_run_in_trouble_comes_first() -> None:
    text = client(named(healthy(), "r41"), named(hung(), "r42")).get("/").text
    assert text.index("r42") < text.index("r41")
    assert "culprit: rank 5 on node0" in text
    assert "<title>✖ 1 of 2 runs</title>" in text


def test_each_run_has_its_own_page_with_all_that_belongs_to_it() -> None:
    own = client(named(healthy(), "r41"), named(hung(), "r42"))
    assert "r42" in own.get("/runs/1/").text
    assert own.get("/runs/1/api/state").json()["state"]["run"] == "r42"
    assert own.get("/runs/1/static/page.js").status_code == 200
    assert own.get("/runs/2/").status_code == 404


def test_a_name_from_a_run_stays_text() -> None:
    assert HOSTILE not in client(named(healthy(), HOSTILE), healthy()).get("/").text


def test_the_metrics_of_all_are_one_exposition() -> None:
    text = client(named(healthy(), "r41"), named(hung(), "r42")).get("/metrics").text
    runs = {dict(labels)["run"] for name, labels in parsed(text) if name == "train_run_state"}
    assert runs == {"r41", "r42"}
    assert text.count("# TYPE train_run_state ") == 1


def test_what_is_said_about_a_metric_stands_once() -> None:
    one = '# HELP a b\n# TYPE a gauge\na{run="1"} 1\n'
    other = '# HELP a b\n# TYPE a gauge\na{run="2"} 2\n'
    assert together([one, other]) == '# HELP a b\n# TYPE a gauge\na{run="1"} 1\na{run="2"} 2\n'


@pytest.mark.parametrize("path", ["/events", "/runs/0/events"])
def test_it_stays_current(path: str) -> None:
    pages = [RunPage(healthy), RunPage(hung)]
    with (
        serve(pages, port=0, interval_s=0.05) as url,
        httpx.stream("GET", f"{url}{path}", trust_env=False, timeout=60) as stream,
    ):
        first = next(line for line in stream.iter_lines() if line)
    assert first.startswith("data: ")
