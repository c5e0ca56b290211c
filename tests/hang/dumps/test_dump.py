"""What is kept of a dump, whatever version and backend wrote it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hang.recorder import Job, dump_of
from train_ledger.hang.dumps.dump import Dump, reduce_dump


def reduced(content: Any) -> Dump:
    dump = reduce_dump(content, file="rank_0", rank=0, host=None)
    assert dump is not None
    return dump


def entry(seq: Any, name: str = "nccl:all_reduce", **others: Any) -> dict[str, Any]:
    return {
        "record_id": seq,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "profiling_name": name,
        "state": "scheduled",
        "retired": False,
        "is_p2p": False,
        **others,
    }


def test_a_long_dump_is_kept_short() -> None:
    job = Job(1)
    for _ in range(500):
        job.issue([0], done=True)
    for _ in range(100):
        job.issue([0])
    (held,) = dump_of(job, 0).groups
    assert (held.highest, held.lowest_pending, held.exact) == (600, 501, True)
    assert len(held.ops) <= 40
    assert [op.seq for op in held.ops][:9] == [493, 494, 495, 496, 497, 498, 499, 500, 501]
    assert held.ops[-1].seq == 600


@pytest.mark.parametrize(
    ("backend", "others", "done"),
    [
        ("nccl", {"state": "completed"}, True),
        ("nccl", {"time_discovered_completed_ns": 5}, True),
        ("nccl", {"time_discovered_completed_ns": 0, "retired": True}, False),  # timed out
        ("gloo", {"retired": True}, True),
        ("gloo", {"retired": False}, False),
        ("xccl", {"retired": True}, True),  # a backend without completion hooks
        ("nccl2", {"state": "started", "retired": True}, False),
    ],
)
def test_what_is_done_depends_on_the_backend(backend: str, others: dict[str, Any], done: bool) -> None:
    (held,) = reduced({"version": "2.10", "entries": [entry(1, f"{backend}:all_reduce", **others)]}).groups
    assert held.ops[0].done is done


def test_version_1_names_groups_by_id_and_counts_with_seq_id() -> None:
    content = {
        "version": "1.2",
        "pg_config": {0: [0, 1]},
        "entries": [
            {
                "record_id": 0,
                "pg_id": 0,
                "seq_id": 7,
                "profiling_name": "nccl:all_reduce",
                "state": "scheduled",
            }
        ],
    }
    dump = reduced(content)
    assert dump.config == {"0": ("", "[0, 1]")}
    assert (dump.groups[0].name, dump.groups[0].lowest_pending) == ("0", 7)


def test_version_1_0_was_a_bare_list() -> None:
    assert reduced([entry(1)]).groups[0].lowest_pending == 1


def test_numbers_may_stand_in_quotes() -> None:
    assert reduced({"entries": [entry("41")]}).groups[0].lowest_pending == 41


def test_unknown_keys_and_newer_versions_do_no_harm() -> None:
    dump = reduced({"version": "3.7", "shape": [1], "entries": [entry(1, input_split_sizes=[[1, 2]])]})
    assert (dump.version, dump.entries) == ("3.7", 1)


def test_a_coalesced_operation_takes_the_state_of_its_last_entry() -> None:
    parts = [entry(5, "nccl:_broadcast_oop"), entry(5, "nccl:_broadcast_oop")]
    closing = entry(5, "nccl:ALLGATHER_coalesced", state="completed")
    (held,) = reduced({"entries": [*parts, closing]}).groups
    assert held.lowest_pending is None
    assert (held.ops[0].name, held.ops[0].parts) == ("ALLGATHER_coalesced", 3)


@pytest.mark.parametrize(
    "content", [None, 5, "x", [], [1, 2], {}, {"a": 1}, {"entries": 5}, {"entries": [1]}]
)
def test_other_values_are_no_dump(content: Any) -> None:
    assert reduce_dump(content, file="f", rank=0, host=None) is None


@pytest.mark.parametrize(
    "damage",
    [
        {"collective_seq_id": "x"},
        {"collective_seq_id": 1 << 80},
        {"process_group": [["a"], {}]},
        {"process_group": {"a": 1}},
        {"process_group": ("0",)},
        {"profiling_name": 7},
        {"input_sizes": [[-1, "x", 1 << 70], 5]},
        {"input_dtypes": {"a": 1}},
        {"collective_seq_id": -5},
        {"collective_seq_id": float("nan")},
        {"profiling_name": None},
        {"profiling_name": "nccl:\udfff"},
        {"state": 7},
        {"retired": float("nan")},
        {"output_sizes": "[4]"},
        {"time_created_ns": "yesterday"},
        {"time_discovered_completed_ns": [1]},
        {"record_id": None},
        {"record_id": 1 << 90},
        {"process_group": ("\ud800", "a\udfff"), "profiling_name": "nccl:\ud800", "state": "\ud800"},
        {"is_p2p": "no", "profiling_name": "nccl:send 0->99"},
        {"is_p2p": True, "p2p_seq_id": -1, "profiling_name": "nccl:send 0->1"},
    ],
)
def test_an_entry_with_a_value_that_cannot_be_is_left_out_and_counted(damage: dict[str, Any]) -> None:
    dump = reduced({"version": "2.10", "entries": [entry(1), entry(2, **damage)]})
    assert (dump.entries, dump.cut) == (1, "1 of 2 entries not understood")
    assert dump.groups[0].highest == 1
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(dump), type=Dump) == dump


@pytest.mark.parametrize(
    "value",
    [{"frames": [1, {"line": "x"}]}, {"frames": [{"name": "\ud800", "line": 1 << 80}]}, {"new_key": 1}],
)
def test_frames_and_keys_that_only_decorate_do_not_cost_the_entry(value: dict[str, Any]) -> None:
    dump = reduced({"version": "2.10", "entries": [entry(1, **value)]})
    assert (dump.entries, dump.cut) == (1, None)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(dump), type=Dump) == dump


def test_entries_that_are_none_at_all_are_counted() -> None:
    dump = reduced({"version": "2", "entries": [1, None, {}, []]})
    assert (dump.entries, dump.groups, dump.cut) == (0, (), "4 of 4 entries not understood")


def test_groups_beyond_the_bound_are_counted_as_not_understood() -> None:
    entries = [entry(1, process_group=(str(number), "")) for number in range(5000)]
    dump = reduced({"version": "2", "entries": entries})
    assert (len(dump.groups), dump.cut) == (4096, "904 of 5000 entries not understood")


def test_a_status_of_groups_that_cannot_be_is_said() -> None:
    status = {"0": {"last_enqueued_collective": float("nan")}, "1": {"last_enqueued_collective": -1}}
    dump = reduced({"version": "2.10", "pg_status": status, "entries": []})
    assert dump.cut == "the status of 1 of 2 groups is not understood"


def test_where_the_numbers_of_records_are_lost_the_ring_may_have_wrapped() -> None:
    bare = {key: value for key, value in entry(1).items() if key != "record_id"}
    assert reduced({"entries": [bare]}).wrapped


def test_a_dump_of_active_entries_is_told_from_a_full_ring() -> None:
    job = Job(1)
    job.issue([0], done=True)
    for _ in range(3):
        job.issue([0])
    assert dump_of(job, 0, active_only=True).active_only
    assert not dump_of(job, 0, active_only=True).wrapped
    for _ in range(1500):
        job.issue([0])
    ring = dump_of(job, 0, ring=1200)
    assert (ring.active_only, ring.wrapped, ring.groups[0].exact) == (False, True, False)


def test_a_short_ring_full_of_pending_entries_is_told_by_what_was_completed() -> None:
    """The recorder counts 2 as completed, and 3 is in no dump: it fell off."""
    job = Job(1)
    job.issue([0], done=True)
    job.issue([0], done=True)
    for _ in range(6):
        job.issue([0])
    assert dump_of(job, 0, ring=4).active_only  # nothing tells
    job.enqueued, job.completed = {0: {"0": 8}}, {0: {"0": 2}}
    ring = dump_of(job, 0, ring=4, as_json=True)
    assert (ring.active_only, ring.wrapped, ring.groups[0].exact) == (False, True, False)
    assert dump_of(job, 0, active_only=True).active_only


def test_a_group_of_which_nothing_is_held_tells_of_a_short_ring_too() -> None:
    job = Job(2)
    job.group("1", [0, 1])
    job.issue([0], done=True)
    job.issue([0], group="1")
    job.issue([0])
    job.enqueued, job.completed = {0: {"0": 2, "1": 1}}, {0: {"0": 1, "1": 0}}
    assert dump_of(job, 0, ring=1).wrapped
    job.completed = {0: {"0": 1, "1": 1}}
    assert dump_of(job, 0, ring=1).active_only
    job.completed = {0: {"0": -1, "1": -1}}  # not counted at all
    assert dump_of(job, 0, ring=1).active_only
