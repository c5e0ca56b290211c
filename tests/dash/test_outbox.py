"""A message goes out exactly once, whoever is killed when."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from train_ledger.config import Notify
from train_ledger.dash.claim import claimant
from train_ledger.dash.message import Notification, Outcome, redacted
from train_ledger.dash.outbox import Outbox
from train_ledger.dash.sender import deliver, main
from waiting import wait_until


class Receiver(ThreadingHTTPServer):
    """A web hook that counts what it is sent and answers as told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.received: list[dict[str, Any]] = []
        self.answers: list[int] = []
        self.pause_s = 0.0

    @property
    def url(self) -> str:
        return f"json://user:secret@127.0.0.1:{self.server_address[1]}/hook/secret"


class _Hook(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append(json.loads(body))
        time.sleep(self.server.pause_s)
        self.send_response(self.server.answers.pop(0) if self.server.answers else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def page(
    receiver: Receiver | None = None, id: str = "20261130T031205Z-TrainingStepStalled-open", **others: Any
) -> Notification:
    urls = (receiver.url,) if receiver else ()
    return Notification(id, "r42: TrainingStepStalled", "no step for 95 s", **{"urls": urls, **others})


def settled(outbox: Outbox) -> tuple[Outcome, ...]:
    wait_until(lambda: not outbox.waiting())
    return outbox.outcomes()


def test_a_page_arrives_once_and_the_outcome_says_so(tmp_path: Path, receiver: Receiver) -> None:
    outbox = Outbox(tmp_path / "outbox")
    assert outbox.post(page(receiver))
    (outcome,) = settled(outbox)
    assert outcome.delivery == "delivered"
    assert [(each["title"], each["message"], each["type"]) for each in receiver.received] == [
        ("r42: TrainingStepStalled", "no step for 95 s", "failure")
    ]
    assert not outbox.post(page(receiver)), "the same message is not posted twice"
    outbox.resume()
    assert len(receiver.received) == 1


def test_no_outcome_shows_a_secret(receiver: Receiver) -> None:
    receiver.answers = [404]
    urls = (receiver.url, "slack://T1JJ3T3L2/A1BRTD4JD/wrong", "no url, secret")
    outcome = deliver(page(urls=urls), pauses_s=())
    assert outcome.delivery == "failed"
    assert outcome.targets[0].error == "answered with HTTP status 404"
    text = json.dumps(asdict(outcome))
    assert "secret" not in text
    assert "T1JJ3T3L2" not in text


def test_a_posted_message_is_read_by_its_owner_only(tmp_path: Path) -> None:
    message = put(Outbox(tmp_path / "outbox"), page())
    assert stat.S_IMODE(message.stat().st_mode) == 0o600
    assert stat.S_IMODE(message.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("json://127.0.0.1:8080/token", "json://127.0.0.1:8080/…"),
        ("jsons://u:p@hook.example.org?+X=y", "jsons://hook.example.org/…"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/x", "slack://…"),
        ("mailto://me:password@example.org", "mailto://…"),
        ("password", "(no URL)"),
        ("", "(no URL)"),
    ],
)
def test_redacted_addresses(url: str, shown: str) -> None:
    assert redacted(url) == shown


def test_a_target_that_fails_is_tried_again(receiver: Receiver) -> None:
    receiver.answers = [503, 503]
    outcome = deliver(page(receiver), pauses_s=(0.01, 0.01, 0.01))
    assert outcome.delivery == "delivered"
    assert outcome.targets[0].tries == 3


def test_tries_are_bounded_and_one_bad_target_does_not_hide_a_good_one(receiver: Receiver) -> None:
    outcome = deliver(page(receiver, urls=("json://127.0.0.1:9/", receiver.url)), pauses_s=(0.01,))
    assert outcome.delivery == "partly"
    assert [(target.ok, target.tries, target.error) for target in outcome.targets] == [
        (False, 2, "connection refused"),
        (True, 1, None),
    ]
    assert outcome.why == "json://127.0.0.1:9/…: connection refused"


def test_no_answer_in_time_is_not_tried_again_since_it_may_have_arrived(receiver: Receiver) -> None:
    receiver.pause_s = 8.0
    outcome = deliver(page(receiver, timeout_s=4.0), pauses_s=(0.01, 0.01))
    assert len(receiver.received) == 1
    assert outcome.targets[0].error == "no answer in time; not tried again, it may have arrived"


def test_the_command_is_given_the_message_without_addresses_and_without_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "on page"
    script.write_text('#!/bin/sh\ncat > "$1"\n')
    script.chmod(0o755)
    outcome = deliver(page(urls=(), command=(str(script), str(tmp_path / "got; touch pwned"))))
    assert outcome.delivery == "delivered"
    got = json.loads((tmp_path / "got; touch pwned").read_text())
    assert got["title"] == "r42: TrainingStepStalled"
    assert "urls" not in got


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (("/does/not/exist",), "cannot be run: No such file or directory"),
        (("/bin/sh", "-c", "exit 3"), "exit status 3"),
        (("/bin/sleep", "600"), "still ran after 4 s and was killed; not tried again, it may have arrived"),
    ],
)
def test_a_command_that_fails_is_named(command: tuple[str, ...], error: str) -> None:
    outcome = deliver(page(command=command, timeout_s=4.0), pauses_s=())
    assert outcome.targets[0].error == error


def test_a_message_to_nobody_is_delivered_to_nobody() -> None:
    assert deliver(page()).delivery == "delivered"


def test_an_id_must_be_a_file_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="only letters"):
        Outbox(tmp_path).post(page(id="../../etc/passwd"))


def test_addresses_come_from_the_configuration() -> None:
    notify = Notify(urls=("json://127.0.0.1/",), command=("/bin/true",), timeout_s=3.0)
    sent = Notification.to(notify, id="a", title="b", body="c", level="resolved")
    assert (sent.urls, sent.command, sent.timeout_s, sent.level) == (
        notify.urls,
        notify.command,
        3.0,
        "resolved",
    )


def put(outbox: Outbox, notification: Notification) -> Path:
    """A message as a keeper left it that was killed before it could start a sender."""
    start, Outbox._spawn = Outbox._spawn, lambda self, id: None  # type: ignore[method-assign]
    try:
        outbox.post(notification)
    finally:
        Outbox._spawn = start  # type: ignore[method-assign]
    return outbox.folder / f"{notification.id}.json"


def test_a_message_without_a_claim_is_sent_by_the_next_keeper(tmp_path: Path, receiver: Receiver) -> None:
    put(Outbox(tmp_path), page(receiver))
    reborn = Outbox(tmp_path)
    for _ in range(3):
        reborn.resume()
    assert settled(reborn)[0].delivery == "delivered"
    assert len(receiver.received) == 1


def test_several_senders_of_one_message_send_it_once(tmp_path: Path, receiver: Receiver) -> None:
    message = put(Outbox(tmp_path), page(receiver))
    senders = [
        subprocess.Popen([sys.executable, "-m", "train_ledger.dash.sender", str(message)]) for _ in range(4)
    ]
    assert [sender.wait(120) for sender in senders] == [0, 0, 0, 0]
    assert len(receiver.received) == 1


def test_a_claim_whose_sender_died_is_reported_and_never_sent_again(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.pause_s = 30.0
    outbox = Outbox(tmp_path)
    outbox.post(page(receiver))
    wait_until(lambda: receiver.received)
    receiver.pause_s = 0.0
    who = json.loads((tmp_path / f"{page().id}.claim").read_text())
    outbox.resume()
    assert outbox.waiting() == (page().id,), "a sender that lives is waited for"
    os.kill(who["pid"], signal.SIGKILL)
    reborn = Outbox(tmp_path)
    wait_until(lambda: (reborn.resume(), not reborn.waiting())[1])
    (outcome,) = reborn.outcomes()
    assert outcome.delivery == "unknown"
    assert outcome.why is not None
    assert "may have arrived" in outcome.why
    reborn.resume()
    assert len(receiver.received) == 1


def claim(tmp_path: Path, text: str, age_s: float = 0.0) -> Outbox:
    outbox = Outbox(tmp_path)
    message = put(outbox, page())
    path = message.with_suffix(".claim")
    path.write_text(text)
    os.utime(path, (time.time() - age_s,) * 2)
    outbox.resume()
    return outbox


@pytest.mark.parametrize(
    ("changes", "age_s", "over"),
    [
        ({}, 0, False),
        ({"started": "1"}, 0, True),
        ({"boot": "another boot"}, 0, True),
        ({"host": "another host"}, 60, False),
        ({"host": "another host"}, 1000, True),
    ],
    ids=["alive", "a reused pid", "the machine restarted", "elsewhere", "elsewhere long ago"],
)
def test_whose_claim_is_over(tmp_path: Path, changes: dict[str, str], age_s: float, over: bool) -> None:
    outbox = claim(tmp_path, json.dumps({**claimant(), **changes}), age_s)
    assert (outbox.waiting() == ()) is over


@pytest.mark.parametrize(("age_s", "over"), [(0, False), (60, True)])
def test_a_claim_cut_short_is_over_after_a_while(tmp_path: Path, age_s: float, over: bool) -> None:
    outbox = claim(tmp_path, '{"pid": 12', age_s)
    assert (outbox.waiting() == ()) is over


def test_a_sender_that_cannot_start_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train_ledger.dash.outbox.sys.executable", "/bin/false")
    outbox = Outbox(tmp_path)
    outbox.post(page())
    wait_until(lambda: (outbox.resume(), outbox.outcomes())[1])
    (outcome,) = outbox.outcomes()
    assert outcome.delivery == "failed"
    assert outcome.why is not None
    assert "run it by hand" in outcome.why


def test_a_message_or_an_outcome_that_cannot_be_read_is_reported_not_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    assert main([str(tmp_path / "a.json")]) == 1
    (tmp_path / "b.json").write_text("{}")
    (tmp_path / "b.outcome.json").write_text("[")
    a, b = sorted(Outbox(tmp_path).outcomes(), key=lambda outcome: outcome.id)
    assert (a.delivery, b.delivery) == ("failed", "unknown")
    assert a.why is not None
    assert "is no message" in a.why


def test_usage_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err


KEEPER = """
import json, sys, time
from pathlib import Path
from train_ledger.dash import Notification, Outbox
outbox = Outbox(Path(sys.argv[1]))
outbox.resume()
outbox.post(Notification("incident-open", "r42", "stalled", urls=(sys.argv[2],)))
while True:
    outbox.resume()
    time.sleep(0.01)
"""


@contextmanager
def keeper(folder: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", KEEPER, str(folder), url])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("alive_s", [0.1, 0.25, 0.4, 0.6, 0.8, 1.2])
def test_a_keeper_killed_at_any_moment_pages_exactly_once(
    tmp_path: Path, receiver: Receiver, alive_s: float
) -> None:
    folder = tmp_path / "outbox"
    with keeper(folder, receiver.url):
        time.sleep(alive_s)
    with keeper(folder, receiver.url):
        wait_until(lambda: Outbox(folder).outcomes())
        time.sleep(0.2)
    assert [outcome.delivery for outcome in Outbox(folder).outcomes()] == ["delivered"]
    assert len(receiver.received) == 1


def test_a_sender_that_has_ended_leaves_no_process_behind(tmp_path: Path) -> None:
    """Of a run of months there would be one a message."""
    outbox = Outbox(tmp_path)
    outbox.post(page(command=("true",)))
    (sender,) = outbox._senders[page().id]

    def is_gone() -> bool:
        outbox.resume()
        return not outbox._senders and not os.path.exists(f"/proc/{sender.pid}")

    wait_until(is_gone, 120.0)
