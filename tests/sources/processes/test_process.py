"""Processes of ranks that live, end, turn into zombies or never were ours."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]
import pytest

from train_ledger.sources import Liveness

HERE = socket.gethostname()
DEAD = 2**22 - 1  # beyond what a small machine hands out


@dataclass(frozen=True)
class Rank:
    rank: int
    pid: int | None
    attempt: int = 0
    host: str | None = HERE
    heard_t: float | None = None


def names(liveness: Liveness, *ranks: Rank) -> list[tuple[str, int]]:
    return [(event.name, event.rank) for event in liveness.poll(ranks)]


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_a_process_is_seen_once_and_gone_once(child: subprocess.Popen[bytes]) -> None:
    liveness = Liveness()
    rank = Rank(3, child.pid)
    assert names(liveness, rank) == [("process_seen", 3)]
    assert names(liveness, rank) == []
    child.kill()
    child.wait()
    assert names(liveness, rank) == [("process_gone", 3)]
    assert names(liveness, rank) == []


def test_a_zombie_is_gone(child: subprocess.Popen[bytes]) -> None:
    liveness = Liveness()
    names(liveness, Rank(0, child.pid))
    child.kill()
    deadline = time.monotonic() + 60
    while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
    assert names(liveness, Rank(0, child.pid)) == [("process_gone", 0)]


def test_an_event_says_who_when_and_why(child: subprocess.Popen[bytes]) -> None:
    liveness = Liveness()
    (event,) = liveness.poll([Rank(3, child.pid, attempt=2)], now=5.0)
    assert (event.t, event.attempt, event.host, event.details) == (5.0, 2, HERE, {"pid": child.pid})


def test_nobody_is_called_gone_where_no_process_was_ever_seen() -> None:
    """The ranks may count their processes in a container of their own."""
    assert names(Liveness(), Rank(0, DEAD), Rank(1, DEAD - 1)) == []


def test_one_that_lives_shows_that_the_numbers_are_ours() -> None:
    assert names(Liveness(), Rank(0, DEAD), Rank(1, os.getpid())) == [
        ("process_seen", 1),
        ("process_gone", 0),
    ]


def test_a_caller_may_know_that_the_numbers_are_ours() -> None:
    assert names(Liveness(trust_unseen=True), Rank(0, DEAD)) == [("process_gone", 0)]


def test_a_process_that_started_long_after_the_rank_was_last_heard_is_another_one() -> None:
    long_ago = psutil.Process().create_time() - 3600
    assert names(Liveness(trust_unseen=True), Rank(0, os.getpid(), heard_t=long_ago)) == [("process_gone", 0)]


def test_ranks_of_other_hosts_and_without_a_number_are_left_alone() -> None:
    ranks = (Rank(0, DEAD, host="elsewhere"), Rank(1, None), Rank(2, DEAD, host=None))
    assert names(Liveness(trust_unseen=True), *ranks) == []


def test_a_new_attempt_is_looked_at_anew() -> None:
    liveness = Liveness(trust_unseen=True)
    assert names(liveness, Rank(0, DEAD)) == [("process_gone", 0)]
    assert names(liveness, Rank(0, DEAD, attempt=1)) == [("process_gone", 0)]
