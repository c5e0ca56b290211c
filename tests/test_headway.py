"""Long work says how far it is, and whoever listens hears it."""

from __future__ import annotations

import threading

from train_ledger.headway import Headway, counted, heard_by, is_heard, tell


def test_where_nobody_listens_nothing_is_said() -> None:
    assert not is_heard()
    tell("reading dumps", 1, 2, "files")


def test_who_listens_hears_what_is_told_until_the_context_ends() -> None:
    heard: list[Headway] = []
    with heard_by(heard.append):
        assert is_heard()
        assert list(counted("ab", "reading dumps", "files")) == ["a", "b"]
    tell("reading dumps", 9, 9, "files")
    assert [(it.done, it.total, it.is_over) for it in heard] == [(1, 2, False), (2, 2, True)]


def test_what_another_thread_does_is_not_heard() -> None:
    heard: list[Headway] = []
    with heard_by(heard.append):
        other = threading.Thread(target=tell, args=("reading dumps", 1, 2, "files"))
        other.start()
        other.join()
    assert heard == []


def test_who_listens_within_a_context_hears_alone() -> None:
    outer: list[Headway] = []
    inner: list[Headway] = []
    with heard_by(outer.append):
        with heard_by(inner.append):
            tell("judging again", 1, None, "seconds")
        tell("judging again", 2, None, "seconds")
    assert ([it.done for it in inner], [it.done for it in outer]) == ([1], [2])
