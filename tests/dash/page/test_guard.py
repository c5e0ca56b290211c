"""Who may not see the page does not, and who may never has the token in an address for long."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from dash.page.views import healthy
from train_ledger.dash.page import RunPage, app, serve
from train_ledger.dash.page.guard import Guard

TOKEN = "a-token-that-nobody-guesses"  # noqa: S105


COOKIE = f"train_ledger_token_{hashlib.sha256(TOKEN.encode()).hexdigest()[:8]}"


def client() -> TestClient:
    return TestClient(
        app(RunPage(healthy), loopback=False, token=TOKEN),
        base_url="http://node7:9467",
        follow_redirects=False,
    )


@pytest.mark.parametrize("path", ["/", "/events", "/api/state", "/static/page.js", "/reports/x.html"])
def test_without_a_token_nothing_is_seen(path: str) -> None:
    answer = client().get(path)
    assert answer.status_code == 401
    assert "r42" not in answer.text
    assert "open the address that" in answer.text
    assert answer.headers["content-security-policy"]


@pytest.mark.parametrize("token", ["", "a-token-that-nobody-guesse", TOKEN + "x", TOKEN.upper(), "ü"])
def test_a_wrong_token_is_as_good_as_none(token: str) -> None:
    assert client().get("/", params={"token": token}).status_code == 401
    assert client().get("/", headers={"Authorization": f"Bearer {token}".encode()}).status_code == 401
    assert client().get("/", headers={"Cookie": f"{COOKIE}={token}".encode()}).status_code == 401


def test_the_token_moves_from_the_address_into_a_cookie_that_no_script_reads() -> None:
    own = client()
    answer = own.get("/api/state", params={"token": TOKEN, "x": "1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/api/state?x=1")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert own.get("/api/state").status_code == 200


def test_two_keepers_on_one_host_are_both_open() -> None:
    own, header = client(), ""
    for token in (TOKEN, TOKEN[::-1]):
        page = app(RunPage(healthy), loopback=False, token=token)
        other = TestClient(page, base_url="http://node7:9468", follow_redirects=False, cookies=own.cookies)
        told = other.get("/", params={"token": token}).headers["set-cookie"]
        header += told.partition(";")[0] + "; "
        own.cookies.set(
            *told.partition(";")[0].split("=", 1)
        )  # as a browser does: by name, whatever the port
    assert header.count("=") == len(own.cookies) == 2
    assert own.get("/api/state").status_code == 200


def test_nobody_is_sent_to_another_site() -> None:
    answer = client().get("/%2Fevil.example.org/", params={"token": TOKEN})
    assert answer.headers["location"] == "/evil.example.org/"


def test_a_script_gives_it_as_a_bearer() -> None:
    assert client().get("/api/state", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_prometheus_reads_the_metrics_without_one() -> None:
    assert client().get("/metrics").status_code == 200


def test_a_kubelet_that_has_none_sees_that_the_keeper_lives() -> None:
    """keeper.yaml asks for it: unanswered, the keeper would be ended once a minute."""
    answer = client().get("/healthz")
    assert (answer.status_code, answer.text) == (200, "alive\n")
    several = TestClient(app(RunPage(healthy), RunPage(healthy), loopback=False, token=TOKEN))
    assert several.get("/healthz").status_code == 200


def test_what_is_bound_to_the_loopback_wants_none() -> None:
    with serve(healthy, port=0) as url:
        assert "token" not in url


def test_what_is_bound_elsewhere_always_wants_one() -> None:
    with serve(healthy, "0.0.0.0", 0, token=lambda: TOKEN) as url:
        assert url.endswith(f"/?token={TOKEN}")
    with serve(healthy, "0.0.0.0", 0) as first, serve(healthy, "0.0.0.0", 0) as second:
        assert first.partition("?")[2] != second.partition("?")[2]


# -- reports


def reports(folder: Path) -> TestClient:
    return TestClient(app(RunPage(healthy, None, folder)), base_url="http://localhost")


def test_a_report_is_opened_with_no_more_rights_than_on_a_disk(tmp_path: Path) -> None:
    (tmp_path / "20261130T031205Z-GpuXidError.html").write_text("<h1>x</h1>")
    (tmp_path / "20261130T031205Z-GpuXidError.md").write_text("# <script>")
    page = reports(tmp_path).get("/reports/20261130T031205Z-GpuXidError.html")
    assert (page.status_code, page.text) == (200, "<h1>x</h1>")
    assert page.headers["content-security-policy"].startswith("sandbox")
    draft = reports(tmp_path).get("/reports/20261130T031205Z-GpuXidError.md")
    assert draft.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    "name", ["../journal.jsonl", "..%2Fkeeper.lock", "a.html", "20261130T031205Z-X.json", ".html", "%00.html"]
)
def test_nothing_else_is_given_away(tmp_path: Path, name: str) -> None:
    (tmp_path / "journal.jsonl").write_text("secret")
    answer = reports(tmp_path / "reports").get(f"/reports/{name}")
    assert answer.status_code == 404
    assert "secret" not in answer.text


def test_a_link_gives_no_other_file_away(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    (tmp_path / "20261130T031205Z-X.md").symlink_to(tmp_path / "key")
    answer = reports(tmp_path).get("/reports/20261130T031205Z-X.md")
    assert (answer.status_code, "secret" in answer.text) == (404, False)


def test_what_is_no_request_of_a_page_reaches_nothing() -> None:
    """A web socket brings no token along that the page would look for."""
    reached: list[str] = []

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["type"])

    async def nothing(message: object = None) -> Message:
        return {}

    guard = Guard(behind, loopback=True)
    for kind in ("lifespan", "websocket", "http3"):
        asyncio.run(guard({"type": kind, "path": "/events", "headers": []}, nothing, nothing))
    assert reached == ["lifespan"]
