"""Folders of logs: whose is which file, which lines are of whom, and what was not read."""

from __future__ import annotations

import os

import pytest

from train_ledger.sources.logs.log_files import read_log_files
from train_ledger.sources.logs.torchrun import place_of

CAUGHT = (
    "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, "
    "Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n"
)
RAISED = """\
Traceback (most recent call last):
  File "train.py", line 88, in <module>
    step()
ValueError: no
"""
EPILOGUE = """\
Failures:
[1]:
  time      : 2026-02-03_04:05:06
  host      : node1
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 51207)  (SIGTERM)
-----
Root Cause (first observed failure):
[0]:
  time      : 2026-02-03_04:05:06
  host      : node1
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 51208)  (SIGKILL)
"""


def put(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_folder_of_torchrun_says_whose_each_log_is_and_only_its_last_attempt_counts(tmp_path) -> None:
    put(tmp_path, "r42/attempt_0/1/stderr.log", RAISED)
    put(tmp_path, "r42/attempt_1/0/stderr.log", CAUGHT)
    put(tmp_path, "r42/attempt_1/3/stderr.log", RAISED)
    found = read_log_files([tmp_path])
    assert [(it.rank, it.seq) for it in found.said] == [(0, 9)]
    assert [(it.rank, it.exception) for it in found.raised] == [(3, "ValueError: no")]
    assert [it.rank for it in read_log_files([tmp_path], attempt=0).raised] == [1]


def test_each_hosts_agent_counts_its_attempts_on_its_own(tmp_path) -> None:
    put(tmp_path, "node1/attempt_0/rank_0.log", RAISED)
    put(tmp_path, "node1/attempt_1/rank_0.log", CAUGHT)
    put(tmp_path, "node2/attempt_0/rank_8.log", RAISED)
    found = read_log_files([tmp_path])
    assert ([it.rank for it in found.said], [it.rank for it in found.raised]) == ([0], [8])
    (skipped,) = found.skipped
    assert "node1/attempt_0/rank_0.log: is of another attempt than the one that is read" in skipped


def test_local_ranks_of_two_hosts_are_no_global_ranks(tmp_path) -> None:
    for host in ("node1", "node2"):
        put(tmp_path, f"{host}/attempt_0/0/stderr.log", CAUGHT)
    assert {it.rank for it in read_log_files([tmp_path]).said} == {None}


def test_lines_of_ranks_that_share_a_log_are_told_apart(tmp_path) -> None:
    first, second = RAISED.splitlines(), RAISED.replace("ValueError: no", "KeyError: 'x'").splitlines()
    both = "".join(f"[rank0]: {one}\n[rank5]: {two}\n" for one, two in zip(first, second, strict=True))
    found = read_log_files([put(tmp_path, "all.log", both)])
    assert {it.rank: it.exception for it in found.raised} == {0: "ValueError: no", 5: "KeyError: 'x'"}
    assert {it.frame for it in found.raised} == {'File "train.py", line 88, in <module>'}


def test_of_a_chain_of_exceptions_the_first_is_what_went_wrong(tmp_path) -> None:
    chain = (
        RAISED
        + "\nDuring handling of the above exception:\n\n"
        + RAISED.replace("ValueError: no", "OSError: y")
    )
    (raised,) = read_log_files([put(tmp_path, "rank_4.log", chain)]).raised
    assert (raised.rank, raised.exception) == (4, "ValueError: no")


def test_the_launcher_says_how_its_ranks_ended_and_who_failed_first(tmp_path) -> None:
    found = read_log_files([put(tmp_path, "torchrun.log", EPILOGUE)])
    assert [(it.rank, it.code, it.first, it.host) for it in found.ended] == [
        (0, -15, False, "node1"),
        (1, -9, True, "node1"),
    ]


def test_a_line_behind_a_progress_bar_is_found(tmp_path) -> None:
    bar = "\r".join(f"{step}/4096 [00:01<1:10:00]" for step in range(4000))
    (said,) = read_log_files([put(tmp_path, "x.log", f"{bar}\r[rank2]:[E P.cpp:1] {CAUGHT}")]).said
    assert (said.rank, said.seq) == (2, 9)


def test_the_same_statement_counts_once_and_keeps_its_first_place(tmp_path) -> None:
    found = read_log_files([put(tmp_path, "rank_1.log", "x\n" + CAUGHT * 500)])
    assert [it.source for it in found.said] == [f"{tmp_path}/rank_1.log:2"]


def test_a_kernel_log_is_of_the_host_in_its_name(tmp_path) -> None:
    line = "1746493323.5 kernel: NVRM: Xid (PCI:0000:3b:00): 79, gone\n"
    (fault,) = read_log_files([put(tmp_path, "node03.kern.log", line)]).kernel
    assert (fault.code, fault.host, fault.t) == (79, "node03", 1746493323.5)


def test_what_is_not_read_is_said(tmp_path) -> None:
    put(tmp_path, "core", b"\x7fELF\0\0\0" * 99)
    put(tmp_path, "endless.log", b"x" * 3_000_000 + b"\n" + CAUGHT.encode())
    os.mkfifo(tmp_path / "pipe")
    found = read_log_files([tmp_path, tmp_path / "absent"])
    assert [it.seq for it in found.said] == [9]
    text = "\n".join(found.skipped)
    assert all(
        word in text for word in ("core: is no text", "a line longer than", "pipe: is no regular", "absent")
    )


def test_a_linked_folder_is_told_where_it_leads_out(tmp_path) -> None:
    put(tmp_path, "logs/2026/rank_0.log", CAUGHT)
    put(tmp_path, "else/rank_1.log", CAUGHT)
    (tmp_path / "logs" / "latest").symlink_to("2026")
    (tmp_path / "logs" / "round").symlink_to("..")
    (tmp_path / "logs" / "other").symlink_to("../else")
    reading = read_log_files([tmp_path / "logs"])
    assert [it.rank for it in reading.said] == [0]
    (told,) = reading.skipped  # "latest" leads to what is read already
    assert told.endswith(": is a link to a folder, not followed, and 1 more like it")


def test_what_was_said_after_the_moment_that_is_asked_about_is_left_out(tmp_path) -> None:
    lines = "".join(
        f"{t}.5 n kernel: NVRM: Xid (PCI:0000:3b:00): 79, gone\n" for t in (1746493323, 1746499999)
    )
    found = read_log_files([put(tmp_path, "n.kern.log", lines)], until_t=1746493400)
    assert [it.t for it in found.kernel] == [1746493323.5]


@pytest.mark.parametrize(
    ("path", "rank", "local_rank", "attempt"),
    [
        ("logs/none_8z/attempt_2/3/stdout.log", None, 3, 2),
        ("logs/rank_12.log", 12, None, None),
        ("logs/train.rank5.err", 5, None, None),
        ("logs/rank12/stderr.log", 12, None, None),
        ("logs/training.global_rank_0.2026.jsonl", 0, None, None),
        ("logs/crank5.log", None, None, None),
        ("logs/node1/local_rank_5.log", None, None, None),
        ("logs/node_rank-1.log", None, None, None),
        ("logs/tp_rank_3.log", None, None, None),
        ("logs/step_rank_3.log", 3, None, None),
        ("logs/slurm-77.out", None, None, None),
    ],
)
def test_whose_a_log_is_by_its_path(path, rank, local_rank, attempt) -> None:
    from pathlib import PurePosixPath

    place = place_of(PurePosixPath(path))
    assert (place.rank, place.local_rank, place.attempt) == (rank, local_rank, attempt)


def test_what_passes_the_slow_look_passes_the_quick_one() -> None:
    """A block without the few short words is not looked into; each mark of a reader holds one of them."""
    from train_ledger.sources.logs import kernel_log, log_file, torchrun, traceback, watchdog

    for mark in (*watchdog.MARKS, *kernel_log.MARKS, *torchrun.MARKS, *traceback.MARKS):
        assert any(word in mark for word in log_file._COARSE), mark


def test_of_a_long_file_start_and_end_are_read_and_the_rest_is_told(tmp_path) -> None:
    long = CAUGHT.replace("=9", "=1") + "step\n" * 200_000 + CAUGHT.replace("=9", "=2") + "step\n" * 200_000
    path = put(tmp_path, "rank_1.log", long + CAUGHT)
    found = read_log_files([path], budget_bytes=200_000)
    assert [it.seq for it in found.said] == [1, 9]
    assert found.skipped == ("2 MiB in the middle of 1 long files left out, their starts and ends read",)


def test_what_carries_no_time_is_as_old_as_its_file(tmp_path) -> None:
    path = put(tmp_path, "rank_1.log", CAUGHT + RAISED)
    os.utime(path, (1000.0, 1000.0))
    assert read_log_files([path], until_t=1001.0).raised
    before = read_log_files([path], until_t=999.0)
    assert (before.said, before.raised) == ((), ())


@pytest.mark.parametrize(("front", "host"), [("3: ", None), ("node-07: ", "node-07")])
def test_a_traceback_behind_the_name_of_a_task_or_a_host_is_found(tmp_path, front, host) -> None:
    lines = "".join(f"{front}{line}\n" for line in RAISED.splitlines())
    (raised,) = read_log_files([put(tmp_path, "slurm-9.out", lines)]).raised
    assert (raised.rank, raised.host, raised.exception) == (None, host, "ValueError: no")
    assert raised.frame == 'File "train.py", line 88, in <module>'


def test_what_a_log_of_all_says_without_a_name_is_not_of_the_one_rank_that_has_one(tmp_path) -> None:
    found = read_log_files([put(tmp_path, "train.log", "[rank0]:[W P.cpp:1] " + CAUGHT + RAISED)])
    assert [it.rank for it in found.said] == [0]
    assert [it.rank for it in found.raised] == [None]
    assert found.written_t == {}


def test_where_each_log_names_another_rank_each_is_its_ranks(tmp_path) -> None:
    for rank in (2, 3):
        put(tmp_path, f"{rank}x.log", f"[rank{rank}]:[W P.cpp:1] " + CAUGHT + RAISED)
    found = read_log_files([tmp_path])
    assert sorted(it.rank for it in found.raised) == [2, 3]
    assert set(found.written_t) == {2, 3}


def test_a_log_that_begins_with_the_nuls_of_a_truncation_is_read(tmp_path) -> None:
    found = read_log_files([put(tmp_path, "rank_1.log", bytes(5000) + b"\n" + CAUGHT.encode())])
    assert [it.seq for it in found.said] == [9]
    assert not found.skipped
