"""What a worker shortens its parent restores, dump after dump."""

from __future__ import annotations

import msgspec
import pytest

from hang.recorder import Job, dump_of
from train_ledger.hang.dumps.dump import Dump
from train_ledger.hang.dumps.rank_lists import ListsReceived, ListsSent


def dumps(world: int = 64) -> list[Dump]:
    job = Job(world)
    for row in range(2):
        job.group(f"row {row}", range(row * 32, row * 32 + 32), "TP")
    job.group("pair", [0, 1])
    job.issue(range(world))
    return [dump_of(job, rank) for rank in range(world)]


def test_dumps_come_out_as_they_went_in_and_each_long_list_is_sent_once() -> None:
    sent, shared = ListsSent(), dict[str, str]()
    received = ListsReceived(shared)
    lists = []
    for dump in dumps():
        short, new = sent.shortened(dump)
        assert sum(len(ranks) for _, ranks in short.config.values()) < 20
        assert received.restored(short, new) == dump
        lists += new
    assert [len(ranks.split(",")) for ranks in lists] == [64, 32, 32]


def test_two_workers_send_one_list_and_it_is_kept_once() -> None:
    dump, shared = dumps()[0], dict[str, str]()
    restored = [ListsReceived(shared).restored(*ListsSent().shortened(dump)) for _ in range(2)]
    assert restored[0].config["0"][1] is restored[1].config["0"][1]


def test_what_is_too_much_to_be_remembered_is_sent_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train_ledger.hang.dumps.rank_lists._MOST_REMEMBERED", 100)
    dump = dumps()[0]
    assert ListsSent().shortened(dump) == (dump, ())


@pytest.mark.parametrize("ranks", ["#0", "#-1", "#x", "#"])
def test_a_number_that_was_never_sent_is_an_error(ranks: str) -> None:
    dump = msgspec.structs.replace(dumps()[0], config={"0": ("default_pg", ranks)})
    with pytest.raises(ValueError, match=r"list .* of 0|invalid literal"):
        ListsReceived({}).restored(dump, ())
