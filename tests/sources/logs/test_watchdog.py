"""What the lines of the watchdog, of the dump and of the checks say, in the wordings of each generation."""

from __future__ import annotations

import random
import time

import pytest

from train_ledger.sources.logs.said_fault import fault_of
from train_ledger.sources.logs.watchdog import said_in

CAUGHT = (
    b"[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=901, "
    b"OpType=_REDUCE_SCATTER_BASE, NumelIn=65536, NumelOut=8192, "
    b"Timeout(ms)=600000) ran for 600031 milliseconds before timing out."
)
FLOAT = (
    "TensorShape=[{shape}], TensorDtypes={dtype}, TensorDeviceTypes=TensorOptions(dtype=float (default), "
    "device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false (default), "
    "memory_format=(nullopt))"
)


def mismatch(own: tuple[int, str, str, str], other: tuple[int, str, str, str]) -> bytes:
    """The exception of ProcessGroupWrapper, from (rank in the group, operation, shape, dtype)."""
    sides = [
        f"ank {rank} is running collective: CollectiveFingerPrint(SequenceNumber=2, OpType={op}, "
        f"{FLOAT.format(shape=shape, dtype=dtype)})"
        for rank, op, shape, dtype in (own, other)
    ]
    text = f"Detected mismatch between collectives on ranks. R{sides[0]}, but R{sides[1]}."
    return f"[rank{own[0]}]: RuntimeError: {text}Collectives differ in the following aspects: ...".encode()


def one(line: bytes, **about):
    (said,) = said_in(line, **about)
    return said


@pytest.mark.parametrize(
    ("front", "rank"),
    [
        (b"[E ProcessGroupNCCL.cpp:455] ", None),
        (b"[rank6]:[E ProcessGroupNCCL.cpp:560] ", 6),
        (b"[rank10]:[E709 04:05:06.123456789 ProcessGroupNCCL.cpp:605] ", 10),
        (b"node-07: [rank3]:[E709 04:05:06.1 ProcessGroupNCCL.cpp:605] ", 3),
        (b"[default1]:[rank9]:[E709 04:05:06.1 ProcessGroupNCCL.cpp:605] ", 9),
        (b"[node-07:11]:[E ProcessGroupNCCL.cpp:560] ", 11),
        (b"\x1b[31m[rank4]:\x1b[0m[E ProcessGroupNCCL.cpp:560] ", 4),
        (b"Epoch 1:  12%|#2   | 512/4096 [10:00<1:10:00,  1.17s/it][rank5]:[E ProcessGroupNCCL.cpp:455] ", 5),
        (b"3: [rank3]:[E ProcessGroupNCCL.cpp:560] ", 3),
    ],
)
def test_the_global_rank_stands_in_front_and_the_one_inside_counts_within_the_group(front, rank) -> None:
    said = one(front + CAUGHT)
    assert (said.kind, said.rank, said.rank_in_group) == ("timeout", rank, 2)
    assert (said.seq, said.op, said.numel_in, said.numel_out) == (901, "_REDUCE_SCATTER_BASE", 65536, 8192)
    assert (said.timeout_ms, said.ran_ms) == (600_000, 600_031)


def test_the_file_says_whose_line_it_is_where_the_line_does_not() -> None:
    assert one(b"[E ProcessGroupNCCL.cpp:455] " + CAUGHT, rank=7).rank == 7


@pytest.mark.parametrize(
    ("work", "seq", "op"),
    [
        ("WorkNCCL(OpType=ALLREDUCE, TensorShape=[1, 4], Timeout(ms)=1800000)", None, "ALLREDUCE"),
        ("WorkNCCL(SeqNum=5120, OpType=ALLREDUCE, Timeout(ms)=1800000)", 5120, "ALLREDUCE"),
        ("WorkXCCL(SeqNum=3, OpType=BROADCAST, NumelIn=1, NumelOut=1, Timeout(ms)=1800000)", 3, "BROADCAST"),
    ],
)
def test_older_and_other_backends_say_less_or_the_same(work, seq, op) -> None:
    line = (
        f"[Rank 3] Watchdog caught collective operation timeout: {work} ran for 1801730 milliseconds before"
    )
    said = one(line.encode())
    assert (said.seq, said.op, said.timeout_ms, said.ran_ms) == (seq, op, 1_800_000, 1_801_730)


@pytest.mark.parametrize(
    ("inside", "rank_in_group", "group", "desc"),
    [
        ("[PG 0 Rank 6]", 6, "0", None),
        ("[PG 0 (default_pg) Rank 1]", 1, "0", "default_pg"),
        ("[PG ID 5 PG GUID 41 Rank 0]", 0, "41", None),
        ("[PG ID 0 PG GUID 0(default_pg) Rank 2]", 2, "0", "default_pg"),
        ("[PG ID 2 PG GUID 7(mesh_tp) Rank 1]", 1, "7", "mesh_tp"),
    ],
)
@pytest.mark.parametrize(
    ("words", "last"),
    [
        (
            "Timeout at NCCL work: 64, last enqueued NCCL work: 66, last completed NCCL work: 63.",
            (66, None, 63),
        ),
        (
            "Exception (either an error or timeout) detected by watchdog at work: 64, last enqueued NCCL "
            "work: 66, last completed NCCL work: 63.",
            (66, None, 63),
        ),
        (
            " failure detected by watchdog at work sequence id: 64 PG status: last enqueued work: 66, "
            "last started work: 64, last completed work: 63",
            (66, 64, 63),
        ),
    ],
)
def test_how_far_the_group_had_come_on_that_rank(inside, rank_in_group, group, desc, words, last) -> None:
    said = one(f"[rank12]:[E214 04:05:06.3 ProcessGroupNCCL.cpp:2240] {inside} {words}".encode())
    assert (said.kind, said.rank, said.rank_in_group) == ("failure", 12, rank_in_group)
    assert (said.group, said.desc, said.seq) == (group, desc, 64)
    assert (said.last_enqueued, said.last_started, said.last_completed) == last


DUMPING = b"[rank3]:[E328 00:21:12.2 ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank 3] "


@pytest.mark.parametrize(
    ("words", "kind", "text"),
    [
        (b"ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1", "dump_begun", None),
        (b"Observed flight recorder dump signal from another rank via TCPStore.", "dump_asked", None),
        (b"Finished writing Flight Recorder debug info to /x/rank_3", "dump_done", "/x/rank_3"),
        (b"Flight Recorder trace successfully dumped.", "dump_done", None),
        (b"Error opening file for writing Flight Recorder debug info: /x/rank_3", "dump_failed", "/x/rank_3"),
        (
            b"Error writing Flight Recorder debug info to file: /x/rank_3 bad bit: 1",
            "dump_failed",
            "/x/rank_3",
        ),
        (b"ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress", "stuck", None),
        (b"Could not acquire GIL within 300 ms on exit, possible GIL induced hang", "no_gil", None),
        (b'Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server', "store_gone", None),
        (b"To avoid data inconsistency, we are taking the entire process down.", "teardown", None),
        (b"TORCH_NCCL_DUMP_ON_TIMEOUT: 0", "setting", "TORCH_NCCL_DUMP_ON_TIMEOUT=0"),
        (b"TORCH_NCCL_ASYNC_ERROR_HANDLING=1 was set", "setting", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"),
    ],
)
def test_how_a_dump_went_on(words, kind, text) -> None:
    said = one(DUMPING + words)
    assert (said.kind, said.rank) == (kind, 3)
    assert text is None or said.text == text


def test_who_asked_for_the_dump_and_how_far_the_asked_had_come() -> None:
    said = one(
        DUMPING
        + b"Received a dump signal due to a collective timeout from  rank 0 and we will try our best to "
        b"dump the debug info. Last enqueued NCCL work: 2890, last completed NCCL work: 2889.This is"
    )
    assert (said.kind, said.others) == ("dump_asked", (0,))
    assert (said.last_enqueued, said.last_completed) == (2890, 2889)


def test_detail_says_what_two_ranks_brought() -> None:
    said = one(mismatch((0, "ALLREDUCE", "4", "Float"), (1, "ALLGATHER", "4, 2", "Double")))
    assert (said.kind, said.rank, said.rank_in_group) == ("mismatch", 0, 0)
    assert [(it.rank, it.op, it.seq, it.shape, it.dtypes) for it in said.brought] == [
        (0, "ALLREDUCE", 2, "[4]", "Float"),
        (1, "ALLGATHER", 2, "[4, 2]", "Double"),
    ]


def test_a_monitored_barrier_names_who_did_not_come_and_who_did() -> None:
    failed = one(
        b"[rank0]:[E1130 03:22:26.4 P.cpp:67] [Rank 0]: Ranks 2, 5 failed to pass monitoredBarrier in 4000 ms"
    )
    assert (failed.kind, failed.rank, failed.others) == ("barrier", 0, (2, 5))
    came = one(
        b"[rank1]: RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while"
    )
    assert (came.kind, came.rank, came.rank_in_group, came.others) == ("barrier", 1, 1, ())


def test_gloo_times_out_and_loses_its_peer() -> None:
    line = b"[rank1]: RuntimeError: [/x/buffer.cc:78] Timed out waiting 4000ms for recv operation to complete"
    assert (one(line).kind, one(line).timeout_ms, one(line).op) == ("gloo_timeout", 4000, "recv")
    assert (
        one(b"[rank2]: RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:1").kind
        == "peer_gone"
    )


def test_a_stamp_without_a_year_lies_in_the_year_before_its_file_was_written() -> None:
    new_year = 1_767_225_600.0  # 2026-01-01
    said = one(b"[rank2]:[E1231 12:00:00.5 ProcessGroupNCCL.cpp:605] " + CAUGHT, written_t=new_year + 86_400)
    assert said.t is not None
    assert new_year - 2 * 86_400 < said.t < new_year


def test_timeouts_mismatches_and_lost_peers_are_faults_and_progress_is_none() -> None:
    faults = [
        fault_of(one(line))
        for line in (b"[rank2]:[E P.cpp:1] " + CAUGHT, mismatch((0, "A", "1", "F"), (1, "B", "1", "F")))
    ]
    assert [(it.fault, it.rank) for it in faults if it] == [("watchdog_timeout", 2), ("desync", 0)]
    assert faults[0] is not None
    assert faults[0].details["seq"] == 901
    assert fault_of(one(DUMPING + b"ProcessGroupNCCL preparing to dump debug info.")) is None


@pytest.mark.parametrize(
    "line", [b"", b"step: 1 loss: 1.0", b"the watchdog sleeps", b"TCPStore is up at node-1:29500"]
)
def test_other_lines_say_nothing(line) -> None:
    assert said_in(line) == ()


def test_a_setting_that_start_up_mended_is_none() -> None:
    line = b"TORCH_NCCL_ASYNC_ERROR_HANDLING=1 was replaced by 3: 1 (TearDown) aborts the communicator first"
    assert said_in(line) == ()


@pytest.mark.parametrize("mark", ["pair closure", "should dump", "TCPStore"])
@pytest.mark.parametrize("piece", ["/", '"/', " /x", "[", "last enqueued work: ", "Rank 1,"])
def test_a_line_of_one_piece_costs_no_more_than_its_length(mark, piece) -> None:
    line = (mark + " " + piece * 60_000)[:60_000].encode()
    started = time.process_time()
    said_in(line)
    assert time.process_time() - started < 2


def test_no_mangled_line_is_an_error() -> None:
    """Ten thousand lines cut, glued, doubled and sprinkled with bytes that are no text."""
    random.seed(3)
    lines = [
        DUMPING + CAUGHT,
        mismatch((0, "ALLREDUCE", "4", "Float"), (1, "ALLGATHER", "4", "Float")),
        CAUGHT * 3,
    ]
    for _ in range(10_000):
        line = bytearray(random.choice(lines))
        for _ in range(random.randrange(1, 6)):
            at = random.randrange(len(line) or 1)
            line[at : at + random.randrange(8)] = random.randbytes(random.randrange(6))
        for said in said_in(bytes(line), written_t=random.choice([None, 0.0, -1e18, 1e18, 1.7e9])):
            fault_of(said)
