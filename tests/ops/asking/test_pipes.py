"""Dumps asked for by a named pipe, from processes that behave as NCCL's process group does."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from train_ledger.ops.asking.collect import Asking, collect_dumps
from train_ledger.ops.asking.pipes import PipeError, Watched, ask_by_pipe, dump_places
from train_ledger.run_dir import RunDir

DUMP = pickle.dumps({"version": "2.10", "entries": [{"record_id": 1}] * 200}, protocol=2)
NCCL = """
import os, sys, time
rank = os.environ["RANK"]
pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + rank + ".pipe"
os.mkfifo(pipe)
fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
print("up", flush=True)
while not os.read(fd, 128):
    time.sleep(0.05)
data = bytes.fromhex(sys.argv[1])
with open(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + rank, "wb", buffering=0) as file:
    file.write(data[: len(data) // 2])
    time.sleep(float(sys.argv[2]))
    file.write(data[len(data) // 2 :])
time.sleep(60)
"""


@dataclass(frozen=True)
class Rank:
    rank: int
    pid: int | None
    attempt: int = 0
    host: str | None = None
    worker_server: str | None = None


@contextlib.contextmanager
def nccl_rank(folder: Path, rank: int, dump: str = "rank_", slow_s: float = 0.5) -> Iterator[int]:
    variables = {
        "RANK": str(rank),
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{folder}/pipe_",
        "TORCH_FR_DUMP_TEMP_FILE": dump,
    }
    command = [sys.executable, "-c", NCCL, DUMP.hex(), str(slow_s)]
    with subprocess.Popen(
        command, env={**os.environ, **variables}, stdout=subprocess.PIPE, cwd=folder
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process.pid
        process.kill()


def test_who_has_no_monitor_is_asked_by_its_pipe_and_its_file_is_waited_for(tmp_path: Path) -> None:
    """Its file is written in two halves, into a folder of its own, by a relative name."""
    run_dir = RunDir(tmp_path / "run")
    with nccl_rank(tmp_path, 3, dump="dumps_") as pid:
        found = collect_dumps(run_dir, [Rank(3, pid)], Asking("r", time.time(), wait_s=4.0))
    assert (found.by, found.failed) == ({3: "its pipe"}, {})
    assert run_dir.comm_trace_of(3).read_bytes() == DUMP


def test_a_file_that_is_not_whole_in_time_is_said_to_be_begun(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    run_dir.requests.mkdir(parents=True)
    run_dir.reply("r", 3).write_text('{"ok": false, "error": "its monitor cannot"}')  # nor is it waited for
    with nccl_rank(tmp_path, 3, dump=f"{tmp_path}/dumps_", slow_s=60) as pid:
        found = collect_dumps(run_dir, [Rank(3, pid)], Asking("r", time.time(), wait_s=4.0))
    assert found.by == {}
    assert f"asked by its pipe, but {tmp_path}/dumps_3 was not whole 4 s later" in found.failed[3]


def test_a_dump_of_before_is_not_taken_for_the_answer(tmp_path: Path) -> None:
    (tmp_path / "dumps_3").write_bytes(DUMP)
    os.mkfifo(tmp_path / "pipe_3.pipe")
    reader = os.open(tmp_path / "pipe_3.pipe", os.O_RDONLY | os.O_NONBLOCK)
    asking = Asking("r", 0.0, 0.5, pipe_prefix=f"{tmp_path}/pipe_", dump_prefix=f"{tmp_path}/dumps_")
    found = collect_dumps(RunDir(tmp_path / "run"), [Rank(3, None)], asking)
    assert os.read(reader, 10) == b"1"
    os.close(reader)
    assert f"but nothing was written to {tmp_path}/dumps_3 or " in found.failed[3]


def test_what_is_no_pipe_with_a_reader_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0.pipe")
    (tmp_path / "1.pipe").write_text("precious")
    os.mkfifo(tmp_path / "target")
    (tmp_path / "2.pipe").symlink_to(tmp_path / "target")
    whys = {}
    for rank in range(4):
        with pytest.raises(PipeError) as told:
            ask_by_pipe(f"{tmp_path}/", rank)
        whys[rank] = str(told.value).replace(str(tmp_path), "")
    assert whys == {
        0: "nobody reads /0.pipe",
        1: "/1.pipe is no pipe",
        2: "/2.pipe is no pipe",
        3: "there is no pipe /3.pipe",
    }
    assert (tmp_path / "1.pipe").read_text() == "precious"


def test_another_users_pipe_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "0.pipe")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(PipeError, match="another user's"):
        ask_by_pipe(f"{tmp_path}/", 0)


def test_a_pipe_that_is_full_is_asked_already(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0.pipe")
    reader = os.open(tmp_path / "0.pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "0.pipe", os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    started = time.monotonic()
    ask_by_pipe(f"{tmp_path}/", 0)
    assert time.monotonic() - started < 30, "it waited for its reader"
    os.close(reader)
    os.close(writer)


def test_where_dumps_may_lie() -> None:
    variables = {"TORCH_FR_DUMP_TEMP_FILE": "/dumps/rank_", "HOME": "/root"}
    assert [*map(str, dump_places(5, variables, 12, None))] == [
        "/dumps/rank_5",
        "/root/.cache/torch/comm_lib_trace_rank_5",
    ]
    relative = dump_places(5, {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "dump_"}, 12, "mine_")
    assert [*map(str, relative)][:2] == ["/proc/12/cwd/mine_5", "/proc/12/cwd/dump_5"]


@pytest.mark.parametrize(
    ("data", "whole"),
    [(DUMP, True), (DUMP[:-1], False), (b'{"a": 1}\n', True), (b'{"a": 1', False), (b"", False)],
)
def test_a_file_is_whole_when_it_ends_and_grows_no_more(tmp_path: Path, data: bytes, whole: bool) -> None:
    watched = Watched(tmp_path / "rank_0")
    assert not watched.is_whole()
    (tmp_path / "rank_0").write_bytes(data)
    assert not watched.is_whole(), "it may still grow"
    assert watched.is_whole() is whole


def test_of_a_process_that_is_gone_it_is_said(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    rank = Rank(3, process.pid, host=socket.gethostname())
    found = collect_dumps(RunDir(tmp_path / "run"), [rank], Asking("r", time.time(), wait_s=0.2))
    assert found.failed[3].startswith(f"no answer, and no process {process.pid} here")
