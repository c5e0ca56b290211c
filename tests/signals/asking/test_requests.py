"""What somebody outside asks of a rank, answered once."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from train_ledger.run_dir import RunDir
from train_ledger.signals.asking import requests as module
from train_ledger.signals.asking.requests import Requests

NOW = time.time()


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path)
    run.requests.mkdir()
    return run


@pytest.fixture
def requests(run: RunDir) -> Requests:
    return Requests(run, rank=5, attempt=0, started=NOW)


def ask(run: RunDir, request_id: str, **request: Any) -> None:
    content = {"id": request_id, "t": NOW + 1, "ranks": None, **request}
    run.request(request_id).write_text(json.dumps(content))


def answer(run: RunDir, request_id: str) -> Mapping[str, Any] | None:
    path = run.reply(request_id, 5)
    content: Mapping[str, Any] | None = json.loads(path.read_bytes()) if path.exists() else None
    return content


def test_stacks(run: RunDir, requests: Requests) -> None:
    ask(run, "stacks-1", do="stacks")
    requests.answer_new()
    replied = answer(run, "stacks-1")
    assert replied is not None
    assert replied["ok"] is True
    path = Path(replied["path"])
    assert path == run.stacks() / "rank_5.txt"
    assert "in test_stacks" in path.read_text()


def test_a_later_attempt_writes_into_its_own_folder(run: RunDir) -> None:
    ask(run, "stacks-1", do="stacks")
    Requests(run, rank=5, attempt=2, started=NOW).answer_new()
    assert (run.stacks(2) / "rank_5.txt").exists()


@pytest.mark.parametrize(("ranks", "answered"), [(None, True), ([5], True), ([4, 6], False), ([], False)])
def test_only_the_ranks_that_are_meant_answer(
    run: RunDir, requests: Requests, ranks: list[int] | None, answered: bool
) -> None:
    ask(run, "one", do="stacks", ranks=ranks)
    requests.answer_new()
    assert (answer(run, "one") is not None) is answered


def test_a_request_is_answered_once(run: RunDir, requests: Requests) -> None:
    ask(run, "one", do="stacks")
    requests.answer_new()
    run.reply("one", 5).unlink()
    requests.answer_new()
    assert answer(run, "one") is None


def test_what_an_earlier_attempt_answered_is_left_alone(run: RunDir, requests: Requests) -> None:
    ask(run, "one", do="stacks")
    run.reply("one", 5).write_text('{"ok": true, "path": "there"}')
    requests.answer_new()
    assert answer(run, "one") == {"ok": True, "path": "there"}


def test_what_was_asked_of_an_earlier_attempt_is_skipped(run: RunDir, requests: Requests) -> None:
    ask(run, "old", do="stacks", t=NOW - 60)
    requests.answer_new()
    assert answer(run, "old") is None


def test_what_a_rank_cannot_do_is_said(run: RunDir, requests: Requests) -> None:
    ask(run, "one", do="make coffee")
    requests.answer_new()
    replied = answer(run, "one")
    assert replied is not None
    assert (replied["ok"], replied["error"]) == (
        False,
        "a rank cannot do 'make coffee'; it can dump, stacks, profile, memory_snapshot",
    )


def test_no_recorder_is_said(run: RunDir, requests: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch._C._distributed_c10d", raising=False)
    ask(run, "one", do="dump")
    requests.answer_new()
    replied = answer(run, "one")
    assert replied is not None
    assert (replied["ok"], replied["error"]) == (False, "this process has not imported torch.distributed")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_request_nobody_can_read_is_counted_and_hurts_nobody(
    run: RunDir, requests: Requests, content: bytes
) -> None:
    run.request("broken").write_bytes(content)
    for _ in range(5):
        requests.answer_new()
    assert requests.unreadable == 1
    assert answer(run, "broken") is None


def test_a_request_that_is_still_being_written_is_read_when_it_is_whole(
    run: RunDir, requests: Requests
) -> None:
    run.request("one").write_bytes(b'{"id": "one", "do": "sta')
    requests.answer_new()
    ask(run, "one", do="stacks")
    requests.answer_new()
    assert answer(run, "one") is not None
    assert requests.unreadable == 0


def test_the_answers_of_a_thousand_ranks_are_not_listed_each_second(
    run: RunDir, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(1000):
        run.reply("earlier", rank).write_text("{}")
    for _ in range(5):
        requests.answer_new()
    with monkeypatch.context() as nothing_changed:
        nothing_changed.delattr(module.os, "listdir")
        requests.answer_new()
    ask(run, "one", do="stacks")
    requests.answer_new()
    assert answer(run, "one") is not None


def test_other_files_are_no_requests(run: RunDir, requests: Requests) -> None:
    for name in ("one.rank_3.json", ".one.json.tmp", "note.txt", "a b.json"):
        (run.requests / name).write_text('{"do": "stacks"}')
    requests.answer_new()
    assert not run.stacks().exists()


def test_a_run_without_requests_costs_nothing(tmp_path: Path) -> None:
    Requests(RunDir(tmp_path / "absent"), rank=5, attempt=0, started=NOW).answer_new()


def test_a_disk_that_takes_no_dump_is_answered_where_possible(run: RunDir, requests: Requests) -> None:
    run.stacks().write_text("a file in the way")
    ask(run, "one", do="stacks")
    requests.answer_new()
    replied = answer(run, "one")
    assert replied is not None
    assert replied["ok"] is False
    assert "File exists" in replied["error"] or "Not a directory" in replied["error"]


def test_a_fifo_in_the_place_of_a_request_holds_nobody_up(run: RunDir, requests: Requests) -> None:
    os.mkfifo(run.request("a"))
    run.request("b").mkdir()
    ask(run, "c", do="stacks")
    within = threading.Thread(target=lambda: [requests.answer_new() for _ in range(5)], daemon=True)
    within.start()
    within.join(60)
    assert not within.is_alive()
    assert answer(run, "c") is not None
    assert requests.unreadable == 2
