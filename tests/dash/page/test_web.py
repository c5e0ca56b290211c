"""The page over real HTTP: what it answers, what it refuses, and that it stays current."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from dash.page.views import HOSTILE, healthy, hung
from dash.test_exposition import parsed
from train_ledger.dash.page import PageView, serve
from train_ledger.dash.page.guard import is_loopback
from train_ledger.dash.server import AddressUnusableError
from waiting import wait_until


class Shown:
    """What the keeper knows; a test changes it as a keeper would."""

    def __init__(self, view: PageView) -> None:
        self.view = view

    def __call__(self) -> PageView:
        return self.view


@pytest.fixture
def shown() -> Shown:
    return Shown(hung())


@pytest.fixture
def client(shown: Shown) -> Iterator[httpx.Client]:
    with serve(shown, port=0, interval_s=0.05) as url, httpx.Client(base_url=url, trust_env=False) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/api/state", "application/json"),
        ("/metrics", "text/plain"),
        ("/static/page.js", "text/javascript"),
        ("/static/page.css", "text/css"),
        ("/static/icon.svg", "image/svg+xml"),
    ],
)
def test_every_answer_is_typed_and_carries_the_policy(client: httpx.Client, path: str, kind: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert answer.headers["content-security-policy"].startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'"
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_the_page_is_read_only(client: httpx.Client) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert client.request(method, "/").status_code == 405
    assert client.head("/").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example.org", "localhost.evil.org", "10.0.0.1", "", "[::1", "[::1]evil.example.org"]
)
def test_another_host_name_is_refused(client: httpx.Client, host: str) -> None:
    answer = client.get("/api/state", headers={"Host": host})
    assert answer.status_code in (400, 421)
    assert "r42" not in answer.text


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:9467", True),
        ("127.0.0.1", True),
        ("localhost:8080", True),
        ("LOCALHOST", True),
        ("[::1]:9467", True),
        ("[::1]", True),
        ("127.0.0.1.evil.org", False),
        ("0.0.0.0", False),
        ("[::1].evil.org", False),
        ("[127.0.0.1]", False),
        ("localhost:80.evil.org", False),
        ("", False),
    ],
)
def test_what_names_the_loopback(host: str, ours: bool) -> None:
    assert is_loopback(host) is ours


def test_the_state_as_json_is_strict_json(client: httpx.Client, shown: Shown) -> None:
    view = shown.view
    ranks = {**view.state.ranks, 0: replace(view.state.ranks[0], values={"loss": float("nan")})}
    shown.view = replace(view, state=replace(view.state, ranks=ranks))
    text = client.get("/api/state").text
    state = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert state["schema"] == 1
    assert state["verdict"] == "culprit: rank 5 on node0"
    assert state["diagnosis"]["ranks"] == [5]
    assert state["state"]["ranks"]["0"]["values"]["loss"] == "NaN"
    assert state["state"]["ranks"]["5"]["host"] == HOSTILE


def test_metrics_of_the_run_can_be_scraped_from_the_page_but_none_that_could_hide_a_hang(
    client: httpx.Client,
) -> None:
    text = client.get("/metrics").text
    names = {name for name, _ in parsed(text)}
    assert {"train_run_state", "train_restart_total", "train_stall_threshold_seconds"} <= names
    assert not [name for name in names if "timestamp" in name or name == "train_step"]


def test_what_is_not_there_is_404(client: httpx.Client) -> None:
    for path in ("/static/../web.py", "/static/web.py", "/elsewhere"):
        assert client.get(path).status_code == 404


def test_an_open_page_is_sent_what_changed_and_no_more(client: httpx.Client, shown: Shown) -> None:
    shown.view = healthy()
    with client.stream("GET", "/events") as stream:
        updates = (json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line)
        first = next(updates)
        assert set(first["parts"]) >= {"verdict", "clock", "ranks", "title"}
        assert next(updates)["parts"] == {}
        shown.view = hung()
        changed = next(update for update in updates if update["parts"])
        assert "culprit: rank 5" in changed["parts"]["verdict"]
        assert changed["t"] == shown.view.state.t


def test_open_pages_are_bounded_and_a_closed_one_makes_room(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train_ledger.dash.page.stream._MOST_STREAMS", 1)
    with client.stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        with client.stream("GET", "/events") as second:
            assert second.status_code == 503

    def is_let_in() -> bool:
        with client.stream("GET", "/events") as stream:
            return stream.status_code == 200

    wait_until(is_let_in, what="for the place of the closed page")


def test_many_that_come_at_once_are_no_more_than_may_be_open(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train_ledger.dash.page.stream._MOST_STREAMS", 4)
    asked = f"GET /events HTTP/1.1\r\nHost: {client.base_url.netloc.decode()}\r\n\r\n".encode()
    with contextlib.ExitStack() as open_:
        address = (client.base_url.host, client.base_url.port)
        many = [open_.enter_context(socket.create_connection(address, timeout=60)) for _ in range(40)]
        for each in many:
            each.sendall(asked)
        answers = [each.recv(12)[-3:] for each in many]
    assert sorted(answers) == [b"200"] * 4 + [b"503"] * 36


def test_who_asks_only_whether_there_are_events_holds_no_place(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train_ledger.dash.page.stream._MOST_STREAMS", 1)
    for _ in range(3):
        answer = client.head("/events")
        assert (answer.status_code, answer.headers["content-type"]) == (
            200,
            "text/event-stream; charset=utf-8",
        )


def test_the_server_ends_though_a_page_is_open(shown: Shown) -> None:
    with serve(shown, port=0, interval_s=0.05) as url, httpx.Client(base_url=url, trust_env=False) as client:
        stream = client.stream("GET", "/events")
        lines = stream.__enter__().iter_lines()
        next(lines)
        started = time.monotonic()
    assert time.monotonic() - started < 60
    assert not [thread for thread in threading.enumerate() if thread.name == "page"]


def test_a_taken_address_is_one_clear_line(shown: Shown) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with (
            pytest.raises(AddressUnusableError, match=f"page: cannot listen on 127.0.0.1:{port}"),
            serve(shown, port=port),
        ):
            pass


def test_while_a_page_is_made_whoever_asks_whether_all_is_alive_is_answered() -> None:
    began, answered = threading.Event(), threading.Event()
    waited: list[bool] = []

    def look() -> PageView:
        began.set()
        waited.append(answered.wait(20.0))
        return healthy()

    with serve(look, port=0) as url, httpx.Client(base_url=url, trust_env=False, timeout=60.0) as client:
        asking = threading.Thread(target=client.get, args=("/",))
        asking.start()
        assert began.wait(20.0)
        assert httpx.get(f"{url}/healthz", trust_env=False, timeout=60.0).text == "alive\n"
        answered.set()
        asking.join()
    assert waited == [True]
