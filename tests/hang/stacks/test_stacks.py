"""Where ranks stand: from py-spy's and faulthandler's own output to words."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hang.recorder import Job, answer_of
from train_ledger.hang import stacks
from train_ledger.hang.stacks import Frame, RankStack, Thread

SITE = "/opt/venv/lib/python3.11/site-packages"

PY_SPY_TEXT = """\
Process 22752: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 22752 (idle): "MainThread"
    wait_for_batch (train.py:5)
    main (train.py:8)
    <module> (train.py:9)
Thread 22754 (active+gil): "loader 0"
    Condition.wait (threading.py:327)
    Queue.get (queue.py:171)
    Thread._bootstrap (threading.py:1002)
"""

FAULTHANDLER = f"""\
Timeout (0:00:01)!
Thread 0x00007fb9f6f1d6c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  File "/usr/lib/python3.11/queue.py", line 171 in get

Thread 0x00007fb9f7a8fb80 (most recent call first):
  File "{SITE}/torch/distributed/distributed_c10d.py", line 3245 in all_reduce
  File "{SITE}/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "/job/train.py", line 8 in main
"""


def stack(rank: int, *frames: tuple[str, int, str], holds_gil: bool = False) -> RankStack:
    listed = tuple(Frame(*frame) for frame in frames)
    return RankStack(rank, 100 + rank, None, (Thread("MainThread", True, listed, holds_gil=holds_gil),))


IN_ALL_REDUCE = (
    (f"{SITE}/torch/distributed/distributed_c10d.py", 3245, "all_reduce"),
    ("/job/train.py", 90, "train_step"),
)


def test_py_spy_text(tmp_path: Path) -> None:
    (tmp_path / "rank_3.txt").write_text(PY_SPY_TEXT)
    found, unread = stacks.read([tmp_path])
    assert unread == []
    assert (found[3].pid, [thread.name for thread in found[3].threads]) == (22752, ["MainThread", "loader 0"])
    assert found[3].threads[1].holds_gil
    stand = stacks.stand_of(found[3])
    assert (stand.where, stand.what, str(stand.frame)) == (
        "host",
        "waits for its data loader",
        "train.py:5 wait_for_batch",
    )


def test_faulthandler_lists_the_main_thread_last(tmp_path: Path) -> None:
    (tmp_path / "rank_0.txt").write_text(FAULTHANDLER)
    found, _ = stacks.read([tmp_path])
    main = stacks.main_thread(found[0])
    assert main is not None
    assert main.frames[0] == Frame(f"{SITE}/torch/distributed/distributed_c10d.py", 3245, "all_reduce")
    assert stacks.stand_of(found[0]).where == "collective"
    assert stacks.frame_of(found[0]) == "train.py:8 main"


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("rank_1.json", b"[{]", "no stack as py-spy writes it"),
        ("rank_1.json", b'[{"pid": "x", "frames": []}]', "no stack as py-spy writes it"),
        ("rank_1.json", b"", "empty file"),
        ("rank_1.txt", b"\xff\xfe nothing", "no stack in it"),
        ("stack.txt", PY_SPY_TEXT.encode(), "no rank in its name"),
    ],
)
def test_what_is_no_stack_is_listed(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(data)
    found, unread = stacks.read([tmp_path])
    assert found == {}
    assert why in unread[0].why


def test_of_two_stacks_of_a_rank_the_newer_counts(tmp_path: Path) -> None:
    (tmp_path / "rank_3.txt").write_text(PY_SPY_TEXT)
    (tmp_path / "rank_3.log").write_text(FAULTHANDLER)
    os.utime(tmp_path / "rank_3.txt", (1, 1))
    assert stacks.stand_of(stacks.read([tmp_path])[0][3]).where == "collective"


@pytest.mark.parametrize(
    ("frames", "where", "what"),
    [
        (IN_ALL_REDUCE, "collective", "waits in a collective"),
        (
            [(f"{SITE}/torch/distributed/distributed_c10d.py", 9, "init_process_group")],
            "set_up",
            "process group",
        ),
        ([("libnccl.so.2", 0, "ncclCommInitRank"), *IN_ALL_REDUCE], "set_up", "NCCL communicator"),
        (
            [
                ("/usr/lib/python3.11/queue.py", 171, "get"),
                (f"{SITE}/torch/utils/data/dataloader.py", 7, "_next_data"),
            ],
            "host",
            "data loader",
        ),
        (
            [("/usr/lib/python3.11/logging/__init__.py", 1, "emit"), ("/job/train.py", 3, "log")],
            "host",
            "log line",
        ),
        ([("/usr/lib/python3.11/threading.py", 1, "acquire"), ("/job/x.py", 3, "hook")], "host", "lock"),
        ([(f"{SITE}/torch/serialization.py", 1, "_save"), ("/job/x.py", 3, "save")], "host", "checkpoint"),
        (
            [("libtorch_cpu.so", 0, "at::native::_local_scalar_dense_cuda"), ("/job/x.py", 3, "f")],
            "host",
            ".item()",
        ),
        ([(f"{SITE}/torch/autograd/graph.py", 1, "_engine_run_backward")], "unknown", "backward"),
        ([("/job/train.py", 3, "check")], "host", "its own code"),
        ([], "unknown", "no Python frame"),
    ],
)
def test_where_a_rank_stands(frames: list[tuple[str, int, str]], where: str, what: str) -> None:
    stand = stacks.stand_of(stack(0, *frames))
    assert stand.where == where
    assert what in stand.what


def test_the_users_own_frame_is_preferred_to_an_installed_one() -> None:
    frames = [
        Frame(f"{SITE}/torch/nn/module.py", 1, "forward"),
        Frame(f"{SITE}/megatron/training.py", 2, "train"),
        Frame("/job/pretrain.py", 3, "main"),
        Frame("<frozen runpy>", 88, "_run_code"),
    ]
    assert str(stacks.user_frame(frames)) == "pretrain.py:3 main"
    assert str(stacks.user_frame(frames[:2])) == "training.py:2 train"
    assert stacks.user_frame(frames[:1]) is None


def test_equal_stacks_are_merged_the_odd_one_first() -> None:
    ranks = [stack(rank, *IN_ALL_REDUCE) for rank in (0, 1, 2, 4)]
    groups = stacks.merge([*ranks, stack(3, ("/job/train.py", 5, "wait"))])
    assert [group.ranks for group in groups] == [(3,), (0, 1, 2, 4)]
    assert groups[0].frames == ("/job/train.py:5 wait",)


def test_the_stack_says_where_the_culprit_stands_and_what_is_suspected() -> None:
    job = Job(4, frames=False)
    job.issue(range(4), done=True)
    job.issue([0, 1, 2])
    found = {3: stack(3, ("/usr/lib/python3.11/threading.py", 1, "wait"), ("/job/data.py", 5, "next_batch"))}
    answer = answer_of(job, stacks=found)
    finding = answer.findings[0]
    assert finding.frame == "data.py:5 next_batch"
    assert "stack of rank 3: waits for its data loader, at data.py:5 next_batch" in finding.evidence
    assert finding.cause_suspected is not None
    assert finding.cause_suspected.startswith("its data loader does not deliver")
    assert "stacks: none were handed in" not in answer.not_observed


def test_a_stack_in_a_collective_makes_a_missing_rank_doubtful() -> None:
    """gloo records no sends and receives: the rank may wait in one."""
    job = Job(4, backend="gloo")
    job.issue(range(4), done=True)
    job.issue([0, 1, 2])
    assert answer_of(job, stacks={3: stack(3, *IN_ALL_REDUCE)}).confidence == "low"


def test_a_held_interpreter_lock_is_said_and_suspected() -> None:
    job = Job(4)
    job.issue(range(4), done=True)
    job.issue([0, 1, 2])
    held = stack(3, ("/job/train.py", 88, "hold_gil"), holds_gil=True)
    finding = answer_of(job, stacks={3: held}).findings[0]
    assert (
        "stack of rank 3: stands in its own code, and holds the interpreter's lock, at train.py:88 hold_gil"
        in finding.evidence
    )
    assert "keeps the interpreter's lock" in (finding.cause_suspected or "")


def test_py_spys_stack_is_preferred_to_one_of_about_the_same_time(tmp_path: Path) -> None:
    thread = {"pid": 7, "os_thread_id": 7, "frames": [{"name": "f", "filename": "/job/x.py", "line": 1}]}
    (tmp_path / "rank_3.json").write_text(json.dumps([thread]))
    (tmp_path / "rank_3.txt").write_text(FAULTHANDLER)
    os.utime(tmp_path / "rank_3.json", (1000, 1000))
    os.utime(tmp_path / "rank_3.txt", (1010, 1010))
    assert stacks.read([tmp_path])[0][3].pid == 7
    os.utime(tmp_path / "rank_3.txt", (1100, 1100))
    assert stacks.read([tmp_path])[0][3].pid is None


# The real py-spy


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process of ours that stands in a function named wait_for_batch."""
    code = """
import time

def wait_for_batch():
    print("up", flush=True)
    time.sleep(600)

wait_for_batch()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process.pid
    process.kill()
    process.wait()
    process.stdout.close()


def test_stacks_are_taken_from_outside(sleeper: int, tmp_path: Path) -> None:
    failed = stacks.take({7: sleeper, 8: 2**22 - 7}, tmp_path, timeout_s=120)
    if "ermission" in failed.get(7, "") or "not installed" in failed.get(7, ""):
        pytest.skip(failed[7])
    assert list(failed) == [8]
    assert failed[8] == "there is no such process any more"
    found, unread = stacks.read([tmp_path])
    assert unread == []
    assert [path.name for path in tmp_path.iterdir()] == ["rank_7.json"]
    assert found[7].pid == sleeper
    assert stacks.frame_of(found[7]) == "<string>:6 wait_for_batch"


def test_a_py_spy_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "py-spy").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "py-spy").chmod(0o755)
    monkeypatch.setattr("train_ledger.hang.stacks.py_spy._program", lambda: str(tmp_path / "py-spy"))
    started = time.monotonic()
    failed = stacks.take(dict.fromkeys(range(20), 1), tmp_path / "stacks", timeout_s=0.5)
    assert time.monotonic() - started < 120
    assert set(failed) == set(range(20))
    assert failed[0].startswith("py-spy did not end within")
    assert failed[19].startswith("not asked")


def test_a_process_that_may_not_be_read_is_not_called_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = (
        "Error: Failed to get process executable name. Check that the process is running.\\n\\nCaused by:\\n"
    )
    (tmp_path / "py-spy").write_text(f"#!/bin/sh\nprintf '{said}    0: Permission denied\\n' >&2\nexit 1\n")
    (tmp_path / "py-spy").chmod(0o755)
    monkeypatch.setattr("train_ledger.hang.stacks.py_spy._program", lambda: str(tmp_path / "py-spy"))
    assert "CAP_SYS_PTRACE" in stacks.take({0: 1}, tmp_path, timeout_s=60)[0]


def test_without_py_spy_each_rank_gets_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert stacks.take({0: 1}, tmp_path, timeout_s=1) == {0: "py-spy is not installed: pip install py-spy"}


# Files that are no files, or no longer there


def test_pipes_folders_and_huge_files_are_listed_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "rank_0.txt").write_text(PY_SPY_TEXT)
    os.mkfifo(tmp_path / "rank_1.txt")
    (tmp_path / "rank_2.txt").symlink_to("nowhere")
    with (tmp_path / "rank_3.txt").open("wb") as file:
        file.truncate(1 << 40)
    found, unread = stacks.read([tmp_path])
    assert list(found) == [0]
    assert {Path(it.file).name: it.why for it in unread} == {
        "rank_1.txt": "no regular file",
        "rank_2.txt": "No such file or directory",
        "rank_3.txt": "refused: more than 32 MiB, too long for a stack",
    }


def test_files_that_vanish_after_they_were_listed_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name in a folder that is gone, one that became a pipe, and a folder that is gone altogether."""
    (tmp_path / "rank_0.txt").write_text(PY_SPY_TEXT)
    iterdir = Path.iterdir

    def with_ghosts(folder: Path) -> Iterator[Path]:
        if folder.name == "gone":
            raise FileNotFoundError(2, "No such file or directory", str(folder))
        return iter([*iterdir(folder), folder / "rank_1.txt", folder / "rank_2.json"])

    monkeypatch.setattr(Path, "iterdir", with_ghosts)
    (tmp_path / "gone").mkdir()
    found, unread = stacks.read([tmp_path, tmp_path / "gone"])
    assert list(found) == [0]
    assert sorted(Path(it.file).name for it in unread) == ["gone", "rank_1.txt", "rank_2.json"]
    assert {it.why for it in unread} == {"No such file or directory"}


@pytest.mark.parametrize("path", [Path("rank\0_1"), Path("rank_" + "1" * 5000), Path("rank_99999999999.txt")])
def test_names_that_cannot_be_are_listed(path: Path) -> None:
    found, unread = stacks.read([path])
    assert (found, len(unread)) == ({}, 1)


@pytest.mark.parametrize(
    "line",
    [
        "    a" + " (x" * 300_000,
        "    " + "x (" * 300_000 + ")",
        'File "' + '", line 1' * 100_000,
        "Thread 0x1 [" * 80_000,
        'Thread 1 (idle): "' + '" ' * 300_000,
        "[" * 100_000,
        '[{"pid": 1, "frames": [], "other": ' + "[" * 200_000,
    ],
    ids=["brackets", "closed brackets", "frames", "threads", "names", "nested", "nested values"],
)
def test_the_time_is_bounded_by_the_length_of_a_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rank_0.txt"
    path.write_text("Stack (most recent call first)\n" + line if line[0] in "FT" else line)
    started_s = time.process_time()
    stacks.read([path])
    assert time.process_time() - started_s < 20


def test_a_byte_order_mark_before_a_stack_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "rank_0.txt").write_bytes(b"\xef\xbb\xbf" + PY_SPY_TEXT.encode())
    (tmp_path / "rank_1.json").write_bytes(
        b'\xef\xbb\xbf[{"pid": 7, "frames": [{"name": "f", "filename": "a.py"}]}]'
    )
    found, unread = stacks.read([tmp_path])
    assert ([found[0].pid, found[1].pid], unread) == ([22752, 7], [])


def test_a_file_name_with_brackets_in_it_is_a_file_name(tmp_path: Path) -> None:
    (tmp_path / "rank_0.txt").write_text(
        'Thread 1 (idle): "MainThread"\n    a.<lambda> (x) (my (job)/train.py:5)\n    b (train.py)\n'
    )
    main = stacks.main_thread(stacks.read([tmp_path])[0][0])
    assert main is not None
    assert main.frames[1] == Frame("train.py", 0, "b")


def test_frames_of_c_are_no_place_of_the_user_whether_they_name_a_library_or_a_source_file() -> None:
    """py-spy --native names the source where there are symbols for it, and the library where not."""
    frames = [
        Frame("libc.so.6", 0, "clock_nanosleep"),
        Frame("callproc.c", 943, "_call_function_pointer"),
        Frame("/job/train.py", 88, "hold_gil"),
    ]
    found = stacks.stand_of(RankStack(3, 1, None, (Thread("MainThread", True, tuple(frames)),)))
    assert (found.where, str(found.frame)) == ("host", "train.py:88 hold_gil")
