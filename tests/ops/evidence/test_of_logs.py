"""What logs add to what is known of each rank, and whom they name where they alone speak."""

from __future__ import annotations

import pytest

from train_ledger.hang import analyse
from train_ledger.ops.evidence.of_logs import read_logs

PG = "[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
STAMP = "[E328 00:21:12.9 ProcessGroupNCCL.cpp:683]"


def caught(rank, seq=2891, *, group=PG, inside=None):
    """The two lines of a watchdog of torch 2.8 and later."""
    inside = rank if inside is None else inside
    return (
        f"[rank{rank}]:{STAMP} [Rank {inside}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600031 "
        "milliseconds before timing out.\n"
        f"[rank{rank}]:{STAMP} {group.format(rank=inside)}  failure detected by watchdog at work sequence "
        f"id: {seq} PG status: last enqueued work: {seq}, last completed work: {seq - 1}\n"
    )


def asked(rank, enqueued):
    return (
        f"[rank{rank}]:{STAMP} {PG.format(rank=rank)} Received a dump signal due to a collective timeout "
        "from  rank 0 and we will try our best to dump the debug info. "
        f"Last enqueued NCCL work: {enqueued}, last "
        f"completed NCCL work: {enqueued}.This is most likely\n"
    )


def log(tmp_path, text, name="train.log"):
    path = tmp_path / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def answer_of(*paths, world_size=None):
    told = read_logs(list(paths), world_size=world_size)
    return analyse([], known=told.known, world_size=world_size)


def test_watchdogs_of_all_but_one_name_the_silent_one(tmp_path):
    answer = answer_of(log(tmp_path, "".join(map(caught, range(7)))), world_size=8)
    assert (answer.verdict, answer.kind, answer.culprits, answer.confidence) == (
        "hang",
        "missing_ranks",
        (7,),
        "low",
    )
    assert (answer.seq, answer.op) == (2891, "ALLREDUCE")


def test_the_silent_one_that_says_how_far_it_came_is_named_with_more(tmp_path):
    text = "".join(map(caught, range(7))) + asked(7, 2890)
    answer = answer_of(log(tmp_path, text))
    assert (answer.culprits, answer.confidence) == ((7,), "medium")


def test_a_log_in_which_all_report_names_nobody(tmp_path):
    answer = answer_of(log(tmp_path, "".join(map(caught, range(8)))))
    assert (answer.kind, answer.culprits) == ("no_mismatch", ())


def test_ranks_within_a_group_are_not_taken_for_global_ones(tmp_path):
    """Seven ranks of a group of eight among 16: it is rank 14 that is silent, and no line says so."""
    lines = [caught(2 * it, group="[PG ID 3 PG GUID 9 Rank {rank}]", inside=it) for it in range(7)]
    answer = answer_of(log(tmp_path, "".join(lines)), world_size=16)
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())


def test_old_lines_that_only_know_the_rank_within_the_group_are_placed_where_one_group_speaks(tmp_path):
    lines = [
        f"[E ProcessGroupNCCL.cpp:455] [Rank {rank}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800730 milliseconds before\n"
        for rank in (0, 1, 2, 4, 5, 6, 7)
    ]
    assert answer_of(log(tmp_path, "".join(lines))).culprits == (3,)
    assert answer_of(log(tmp_path, "".join(lines) + lines[0].replace("=9", "=8"))).culprits == ()


def fingerprint(rank, op, shape="4", dtypes="Float"):
    return (
        f"Rank {rank} is running collective: CollectiveFingerPrint(SequenceNumber=2, OpType={op}, "
        f"TensorShape=[{shape}], TensorDtypes={dtypes}, TensorDeviceTypes=TensorOptions(dtype=float))"
    )


def differs(rank, own, other):
    return (
        f"[rank{rank}]: Traceback (most recent call last):\n"
        f'[rank{rank}]:   File "/job/train.py", line {40 + rank}, in step\n'
        f"[rank{rank}]: RuntimeError: Detected mismatch between collectives on ranks. {own}, but {other}.\n"
    )


@pytest.mark.parametrize("culprit", [0, 2])
def test_detail_names_the_odd_one_whichever_rank_it_is(tmp_path, culprit):
    brought = {rank: fingerprint(rank, "ALLGATHER" if rank == culprit else "ALLREDUCE") for rank in range(4)}
    other = {rank: brought[culprit if rank != culprit else (culprit + 1) % 4] for rank in range(4)}
    text = "".join(differs(rank, brought[rank], other[rank]) for rank in range(4))
    answer = answer_of(log(tmp_path, text))
    assert (answer.kind, answer.culprits) == ("collective_type_mismatch", (culprit,))
    assert answer.findings[0].others_op == "ALLREDUCE"


def test_a_monitored_barrier_of_the_whole_world_names_who_did_not_pass(tmp_path):
    text = (
        "[rank0]:[E1130 03:22:26.4 P.cpp:67] [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 4000 ms\n"
        "[rank1]: RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while\n"
    )
    assert answer_of(log(tmp_path, text), world_size=3).culprits == (2,)
    assert answer_of(log(tmp_path, text), world_size=16).culprits == ()


REASONS = [
    (
        "Error opening file for writing Flight Recorder debug info: /no/rank_1",
        "/no/rank_1 could not be written",
    ),
    ("Finished writing Flight Recorder debug info to /tmp/fr_1", "written to /tmp/fr_1: fetch it"),
    ("HeartbeatMonitor environments: TORCH_NCCL_DUMP_ON_TIMEOUT: 0, x", "TORCH_NCCL_DUMP_ON_TIMEOUT is off"),
    ("TORCH_NCCL_TRACE_BUFFER_SIZE: 0, x", "Flight Recorder is off"),
    ("TORCH_NCCL_ASYNC_ERROR_HANDLING: 1, x", "ends the process before the dump is written"),
    ("ProcessGroupNCCL's watchdog got stuck for 480 seconds without", "watchdog was stuck"),
    ("Could not acquire GIL within 300 ms on exit", "interpreter's lock"),
    ('Failed to check the "should dump" flag on TCPStore, (maybe', "store was gone"),
    ("ProcessGroupNCCL preparing to dump debug info.", "was begun"),
    ("Observed flight recorder dump signal from another rank via TCPStore.", "asked for, and not begun"),
]


@pytest.mark.parametrize(("words", "reason"), REASONS)
def test_a_missing_dump_gets_its_reason(tmp_path, words, reason):
    told = read_logs([log(tmp_path, f"[rank1]:{STAMP} {PG.format(rank=1)} {words}\n")])
    assert reason in (told.known[1].no_dump or "")
    answer = analyse([], known=told.known, world_size=2)
    assert any(line.startswith("dump of rank 1: ") and reason in line for line in answer.not_observed)


def test_a_rank_that_the_launcher_saw_killed_left_no_dump_for_that(tmp_path):
    epilogue = (
        "Root Cause (first observed failure):\n[0]:\n  host      : n1\n  rank      : 1 (local_rank: 1)\n"
    )
    epilogue += "  exitcode  : -9 (pid: 51208)  (SIGKILL)\n"
    told = read_logs([log(tmp_path, epilogue)])
    assert told.known[1].no_dump == "the process was killed (SIGKILL)"
    assert analyse([], known=told.known, world_size=3).culprits == (1,)


def test_kernel_faults_without_a_run_are_of_nobody(tmp_path):
    line = "1746493323.5 n7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus\n"
    told = read_logs([log(tmp_path, line, "n7.kern.log")])
    assert told.known == {}
    assert any("XID 79 of 0000:3b:00 on n7" in note for note in told.not_observed)


def test_an_exception_that_the_program_logged_and_went_on_from_is_no_fall(tmp_path):
    caught_it = (
        'Traceback (most recent call last):\n  File "data.py", line 3, in get\nValueError: bad sample\n'
    )
    goes_on = "".join(f"step: {step} loss: 2.0\n" for step in range(100))
    told = read_logs([log(tmp_path, goes_on + caught_it + goes_on, "rank_3.log")])
    assert told.known[3].exception is None
    ends = caught_it.replace("ValueError: bad sample", "KeyError: 'x'")
    told = read_logs([log(tmp_path, goes_on + caught_it + goes_on + ends, "rank_3.log")])
    assert told.known[3].exception == "KeyError: 'x' (at data.py:3)"
