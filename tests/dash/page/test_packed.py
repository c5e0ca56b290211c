"""What is long comes packed to who takes it so, and as it is to everybody else."""

from __future__ import annotations

import gzip

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from dash.page.histories import KEPT
from dash.page.views import healthy
from train_ledger.dash.page import RunPage, app
from train_ledger.dash.page.packed import packed_answer
from train_ledger.dash.page.plots import plotly_script

LONG = b"step 1,2,3 " * 1000


def asking(takes: str) -> Request:
    return Request({"type": "http", "headers": [(b"accept-encoding", takes.encode())]})


@pytest.mark.parametrize("keep", [False, True])
def test_a_browser_that_takes_gzip_gets_it(keep: bool) -> None:
    answer = packed_answer(asking("gzip, deflate, br"), LONG, "application/json", keep=keep)
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) == len(answer.body) < len(LONG) / 10
    assert gzip.decompress(bytes(answer.body)) == LONG


@pytest.mark.parametrize(("takes", "content"), [("", LONG), ("br", LONG), ("gzip", b"{}")])
def test_all_others_and_short_answers_come_as_they_are(takes: str, content: bytes) -> None:
    answer = packed_answer(asking(takes), content, "application/json")
    assert answer.body == content
    assert "content-encoding" not in answer.headers
    assert answer.headers["vary"] == "Accept-Encoding"


def test_curves_and_plotly_are_what_they_were() -> None:
    with TestClient(app(RunPage(healthy, KEPT)), base_url="http://localhost") as client:
        for path in ("/api/history", "/static/plotly.min.js"):
            packed = client.get(path, headers={"accept-encoding": "gzip"})
            plain = client.get(path, headers={"accept-encoding": "identity"})
            assert packed.headers["content-encoding"] == "gzip"
            assert packed.content == plain.content
        assert plain.content == plotly_script()
