"""Which process a rank is, and how it ended; who completes a step has not."""

from __future__ import annotations

import signal

from train_ledger.facts import Event
from train_ledger.ledger.rank_process import RankProcess


def seen(name: str, t: float, pid: int) -> Event:
    return Event(t, name, 3, details={"pid": pid})


def test_the_first_signal_that_ends_it_is_the_one() -> None:
    process = RankProcess()
    process.got_signal(int(signal.SIGUSR1), 10.0)
    assert process.signal is None
    process.got_signal(int(signal.SIGTERM), 20.0)
    process.got_signal(int(signal.SIGABRT), 30.0)
    assert (process.signal, process.signal_t) == (signal.SIGTERM, 20.0)


def test_another_process_that_is_gone_says_nothing_of_this_one() -> None:
    process = RankProcess(pid=7)
    process.looked_at(seen("process_gone", 10.0, pid=8))
    assert process.gone_t is None
    process.looked_at(seen("process_gone", 20.0, pid=7))
    process.looked_at(seen("process_gone", 30.0, pid=7))
    assert process.gone_t == 20.0
    process.looked_at(seen("process_seen", 40.0, pid=7))
    assert process.gone_t is None


def test_who_completes_a_step_has_not_ended() -> None:
    process = RankProcess(ended=True, gone_t=10.0)
    process.raised({"type": "ValueError", "message": "bad sample", "origin": "a hook"}, 9.0)
    assert process.exception == "ValueError: bad sample (from a hook)"
    process.completed_step(10.0)
    assert (process.ended, process.exception, process.raised_t) == (False, None, None)
    assert process.gone_t == 10.0, "that step may have been its last"
    process.completed_step(11.0)
    assert process.gone_t is None


def test_a_start_that_tells_nonsense_tells_nothing() -> None:
    process = RankProcess(ended=True)
    process.start({"pid": True, "gpu": "0", "uuid": 5, "pci": None, "worker_server": "127.0.0.1:1"})
    assert process == RankProcess(worker_server="127.0.0.1:1")
