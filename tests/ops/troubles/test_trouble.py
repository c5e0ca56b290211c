"""What a fault is: one that can be the cause, a sign of one, what a victim says, or an end from outside."""

from __future__ import annotations

import pytest

from train_ledger.config import Xid
from train_ledger.facts import Event, Fault
from train_ledger.ops.troubles import Trouble
from train_ledger.ops.troubles.trouble import trouble_of


def told(fault: str, **details: object) -> Trouble | None:
    return trouble_of(Fault(60.0, fault, 3, host="n1", source="a.log:7", details=details))


@pytest.mark.parametrize(
    ("fault", "details", "weight"),
    [
        ("exception", {"type": "ValueError", "message": "no"}, "cause"),
        ("exception", {"type": "RuntimeError", "message": "Connection closed by peer"}, "victim"),
        ("exception", {"type": "KeyboardInterrupt"}, "outside"),
        ("exception", {"exit_code": 1, "root": True}, "cause"),
        ("exception", {"exit_code": 1}, "victim"),
        ("oom", {"message": "CUDA out of memory"}, "cause"),
        ("nccl_error", {"message": "unhandled system error"}, "sign"),
        ("nccl_error", {"what": "peer_gone"}, "victim"),
        ("watchdog_timeout", {"op": "ALLREDUCE", "seq": 2}, "victim"),
        ("killed", {"exit_code": -9, "number": 9, "root": True}, "cause"),
        ("killed", {"pid": 7, "process": "python"}, "cause"),
        ("killed", {"why": "TIME LIMIT", "job": "42"}, "outside"),
        ("killed", {"why": "cancelled"}, "outside"),
        ("killed", {"why": "NODE FAILURE"}, "cause"),
        ("killed", {"why": "out of host memory"}, "cause"),
        ("signal", {"number": 15, "victim": True}, "victim"),
        ("signal", {"number": 15, "of": "launcher"}, "outside"),
        ("signal", {"number": 11}, "cause"),
        ("signal", {"number": 6}, "victim"),
        ("checkpoint_failed", {"error": "No space left on device"}, "cause"),
        ("xid", {"code": 79, "pci": "0000:3b:00"}, "cause"),
    ],
)
def test_what_it_can_be(fault: str, details: dict[str, object], weight: str) -> None:
    found = told(fault, **details)
    assert found is not None
    assert (found.weight, found.rank, found.host, found.source) == (weight, 3, "n1", "a.log:7")


@pytest.mark.parametrize(
    ("fault", "details"),
    [
        ("signal", {"number": 10}),
        ("xid", {"code": 43, "pci": "0000:3b:00"}),
        ("nan_suspected", {"message": "OVERFLOW"}),
    ],
    ids=["a dump is asked for", "an XID that the program makes", "a loss scale that is lowered"],
)
def test_what_is_no_trouble(fault: str, details: dict[str, object]) -> None:
    assert told(fault, **details) is None


def test_the_levels_of_xids_are_the_user_s() -> None:
    fault = Fault(60.0, "xid", host="n1", details={"code": 79, "pci": "0000:3b:00", "text": "gone"})
    assert trouble_of(fault, Xid(record=(79,))) is None


def test_what_a_line_does_not_date_lies_between_those_that_do() -> None:
    found = told("oom", message="CUDA out of memory", earliest_t=20.0)
    assert found is not None
    assert (found.earliest_t, found.t) == (20.0, 60.0)


def test_a_rank_s_own_words_are_troubles_too() -> None:
    event = Event(5.0, "ckpt_failed", 0, details={"error": "quota"})
    found = trouble_of(event)
    assert found is not None
    assert (found.kind, found.said) == ("checkpoint_failed", "a checkpoint could not be saved: quota")
    assert trouble_of(Event(5.0, "run_end", 0)) is None


def test_what_two_ranks_say_is_the_same_but_for_its_numbers() -> None:
    one = told("exception", type="KeyError", message="rank 3 shard 17")
    other = told("exception", type="KeyError", message="rank 5 shard 2")
    assert one is not None
    assert other is not None
    assert one.shape == other.shape
