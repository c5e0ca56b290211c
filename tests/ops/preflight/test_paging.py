"""Pages that come, come late, or do not; scrapes that have every rank or not."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from ops.preflight.made import told
from train_ledger.ops.preflight.paging import PageDrilled, Scraped, page_checks
from train_ledger.ops.preflight.scraping import scraped_by

UNSET = Scraped(why_not="[prometheus] url is not set")


def page(notified_s, why_not=""):
    return told(page_checks([PageDrilled("watch", notified_s, 1, why_not)], "", UNSET, ()))["page by watch"]


def test_a_page_within_two_minutes_passes():
    assert (page(8.9), page(119.9), page(120.5)) == ("pass", "pass", "fail")


def test_no_page_and_a_page_that_came_twice_fail():
    assert (page(None, "no message came"), page(9.0, "2 messages instead of one")) == ("fail", "fail")


def test_a_drill_that_did_not_run_says_why():
    found = told(page_checks([], "watch of the drill did not come up", UNSET, ()))
    assert found["page"] == "not_possible"
    assert "did not come up" in found.said("page")


def test_every_rank_must_be_scraped():
    scraped = Scraped((0, 1, 3), 8, "http://p")
    assert told(page_checks([], "", scraped, range(4)))["scrapes"] == "fail"
    assert "rank 2" in told(page_checks([], "", scraped, range(4))).said("scrapes")
    all_of_them = told(page_checks([], "", Scraped((0, 1, 2, 3), 8, "http://p"), range(4)))
    assert (all_of_them["scrapes"], all_of_them["GPU metrics"]) == ("pass", "pass")


def test_a_run_of_which_nothing_is_scraped_fails_though_its_ranks_are_not_known():
    assert told(page_checks([], "", Scraped((), 0, "http://p"), ()))["scrapes"] == "fail"


def test_no_gpus_in_prometheus_is_not_called_a_pass():
    assert told(page_checks([], "", Scraped((0,), 0, "http://p"), ()))["GPU metrics"] == "not_possible"


@pytest.fixture
def prometheus():
    """One that has two ranks of the run r42 and eight GPUs; `answers` may be changed."""
    answers = {"status": 200}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            query = parse_qs(form)["query"][0]
            series = [{"metric": {"rank": str(rank)}, "value": [0, "1"]} for rank in (0, 1)]
            if "DCGM" in query:
                series = [{"metric": {}, "value": [0, "8"]}]
            elif 'run="r42"' not in query:
                series = []
            body = answers.get("body") or {
                "status": "success",
                "data": {"resultType": "vector", "result": series},
            }
            self.send_response(answers["status"])
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    server.server_close()
    thread.join()


def test_prometheus_is_asked_for_the_runs_ranks(prometheus):
    url, _ = prometheus
    found = scraped_by(url, "r42")
    assert (found.ranks, found.gpus, found.fails) == ((0, 1), 8, False)
    assert "127.0.0.1" in found.url
    assert scraped_by(url, 'no"such').ranks == ()


def test_a_prometheus_that_answers_nonsense_or_not_at_all_fails(prometheus):
    url, answers = prometheus
    for body in (
        {"status": "error"},
        ["nonsense"],
        {"status": "success", "data": {"resultType": "vector", "result": 7}},
    ):
        answers["body"] = body
        assert scraped_by(url, "r42").fails
    answers["status"] = 500
    assert scraped_by(url, "r42").fails
    assert scraped_by("http://127.0.0.1:9", "r42").fails
    assert scraped_by("file:///etc/hostname", "r42").fails


def test_where_none_is_named_nothing_fails():
    assert not scraped_by("", "r42").fails
    assert not scraped_by("http://127.0.0.1:9", None).fails


def test_a_password_in_the_address_is_not_shown():
    assert "s3cr3t" not in repr(scraped_by("http://me:s3cr3t@127.0.0.1:9", "r42"))
