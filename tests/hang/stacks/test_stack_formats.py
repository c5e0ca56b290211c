"""Stacks of one process and of many in one file, as the tools write them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.hang import stacks
from train_ledger.hang.stacks import Frame, RankStack, Thread
from train_ledger.hang.stacks.rank_sections import of_ourselves, plain_stacks
from train_ledger.hang.stacks.stack_formats import threads_in

SITE = "/opt/venv/lib/python3.11/site-packages"

FAULTHANDLER = f"""\
Current thread 0x00007f0a3bfff6c0 (most recent call first):
  <no Python frame>

Thread 0x00007f0b7a8fb80f (most recent call first):
  File "{SITE}/torch/distributed/distributed_c10d.py", line 3252 in all_reduce
  File "/job/train.py", line 8 in <module>
"""
PY_SPY = """\
Process 4242: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 4242 (idle): "MainThread"
    wait_for_batch (train.py:5)
Process 4250: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 4250 (active): "MainThread"
    _worker_loop (torch/utils/data/_utils/worker.py:5)
"""
DEBUG_DUMP = f"""\
PARTIAL DATA: 2/4 workers responded
  Rank 1: Timeout: HTTPConnectionPool(host='node-1', port=40001): Read timed out. (read timeout=60)
  Rank 3: ConnectionError: refused

=== Rank 0: http://node-0:40000/handler/dump_traceback? ===
{FAULTHANDLER}
=== Rank 1: http://node-1:40001/handler/dump_traceback? ===
Error: 408
=== Rank 2: http://node-1:40002/handler/dump_traceback? ===
{FAULTHANDLER.replace("line 8 in <module>", "line 9 in <module>")}
=== Rank 3: http://node-1:40003/handler/dump_traceback? ===
Error: 503
"""
DEBUG_PAGE = f"""
<!doctype html>
<head><title>Stacks - PyTorch Distributed</title></head>
  <h1>Stacks</h1>
        <h2>Rank 0: http://node-0:40000/handler/dump_traceback?</h2>
            <pre>{FAULTHANDLER}</pre>
        <h2>Rank 1: http://node-1:40001/handler/dump_traceback?</h2>
            <p>Failed to fetch: status=503</p>
            <pre>ConnectionError: refused</pre>
"""
GDB = """\
[New LWP 4301]
[Thread debugging using libthread_db enabled]

Thread 2 (Thread 0x7f1be7fff700 (LWP 4301) "pt_nccl_watchdg"):
#0  0x00007f1c0 in pthread_cond_timedwait () from /lib/x86_64-linux-gnu/libpthread.so.0

Thread 1 (Thread 0x7f1c0f8fb740 (LWP 4242) "python3"):
#0  0x00007f1c0 in __GI___poll (fds=0x7ffd, nfds=1, timeout=-1) at ../sysdeps/unix/sysv/linux/poll.c:29
#1  0x00007f1c1 in gloo::transport::tcp::Loop::run() () from /opt/torch/lib/libtorch_cpu.so
#2  _PyEval_EvalFrameDefault (tstate=0x1, frame=0x2) at Python/ceval.c:4774
#3  0x0000000000 in ?? ()
[Inferior 1 (process 4242) detached]
"""


def read(path: Path) -> tuple[dict[int, RankStack], list[tuple[str, str]]]:
    found, unread = stacks.read([path])
    return found, [(Path(it.file).name, it.why) for it in unread]


def test_a_dump_of_the_debug_server_holds_every_rank_and_says_whose_is_missing_why(tmp_path: Path) -> None:
    (tmp_path / "stacks_20261130_031400.txt").write_text(DEBUG_DUMP)
    found, unread = read(tmp_path)
    assert list(found) == [0, 2]
    assert {rank: stacks.stand_of(it).where for rank, it in found.items()} == {
        0: "collective",
        2: "collective",
    }
    assert (found[2].host, stacks.frame_of(found[2])) == ("node-1", "train.py:9 <module>")
    assert [name for name, _ in unread] == [f"stacks_20261130_031400.txt, rank {rank}" for rank in (1, 3)]
    assert unread[0][1].startswith("its debug server gave no stack (status 408): Timeout: ")


def test_its_page_saved_from_a_browser_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "stacks.html").write_text(DEBUG_PAGE)
    found, unread = read(tmp_path)
    assert stacks.frame_of(found[0]) == "train.py:8 <module>"
    assert unread == [("stacks.html, rank 1", "its debug server gave no stack (status 503)")]


def test_py_spys_page_of_the_debug_server_tells_the_rank_from_its_children(tmp_path: Path) -> None:
    (tmp_path / "pyspy_dump_1.txt").write_text(f"=== Rank 7: http://n:1/handler/pyspy_dump?x=1 ===\n{PY_SPY}")
    found, _ = read(tmp_path)
    assert (found[7].pid, stacks.frame_of(found[7]), len(found[7].threads)) == (
        4242,
        "train.py:5 wait_for_batch",
        1,
    )


def test_of_py_spys_json_with_subprocesses_the_first_process_counts() -> None:
    thread = {"os_thread_id": 4242, "frames": [{"name": "f", "filename": "a.py", "line": 1}]}
    data = json.dumps([{**thread, "pid": 4242}, {**thread, "pid": 4250}]).encode()
    pid, threads = threads_in(data)
    assert (pid, len(threads)) == (4242, 1)


def test_what_py_spy_wrote_to_a_terminal_is_read_without_its_colours() -> None:
    """`kubectl exec -t` and `ssh -t` make it one."""
    coloured = PY_SPY.replace("4242:", "\x1b[1m\x1b[33m4242\x1b[0m:").replace("Thread", "\x1b[1mThread")
    coloured = coloured.replace("wait_for_batch", "\x1b[32mwait_for_batch\x1b[0m")
    coloured = coloured.replace("(train.py:5)", "(\x1b[36mtrain.py\x1b[0m:\x1b[2m5\x1b[0m)")
    assert threads_in(coloured.encode()) == threads_in(PY_SPY.encode())


def test_gdb_and_pstack(tmp_path: Path) -> None:
    (tmp_path / "rank_3.txt").write_text(GDB)
    found, _ = read(tmp_path)
    main = stacks.main_thread(found[3])
    assert main is not None
    assert found[3].pid == 4242
    assert [it.function for it in main.frames][::3] == ["__GI___poll", "??"]
    assert main.frames[0] == Frame("../sysdeps/unix/sysv/linux/poll.c", 29, "__GI___poll")
    assert stacks.stand_of(found[3]).where == "collective"
    assert found[3].threads[0].name == "pt_nccl_watchdg"


def test_a_stack_of_gdb_without_heads_is_one_thread() -> None:
    _, threads = threads_in(b"#0  0x1 in poll () from /lib/libc.so.6\n#1  main () at main.c:3\n")
    assert [str(it) for it in threads[0].frames] == ["libc.so.6:0 poll", "main.c:3 main"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"schema": 1}',
        b'{"schema": 1, "stacks": [{"rank": -1, "threads": []}]}',
        b'{"schema": 1, "stacks": [{"rank": 0, "threads": [{"name": 1}]}]}',
        b'{"schema": 1, "stacks": [{"rank": 99999999, "threads": []}]}',
    ],
)
def test_what_only_looks_like_our_own_is_refused_in_words(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "node-1.json").write_bytes(data)
    found, unread = read(tmp_path)
    assert found == {}
    assert len(unread) == 1


TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)
THREADS = st.builds(
    Thread,
    TEXT,
    st.booleans(),
    st.lists(st.builds(Frame, TEXT, st.integers(0, 1 << 40), TEXT), max_size=3).map(tuple),
    st.none() | st.booleans(),
    st.booleans(),
)
STACKS = st.builds(
    RankStack,
    st.integers(0, 1000),
    st.none() | st.integers(1, 1 << 22),
    st.none() | TEXT.filter(bool),
    st.lists(THREADS, max_size=3).map(tuple),
)


@given(st.lists(STACKS, max_size=3))
def test_our_own_form_is_read_as_it_was_written(written: list[RankStack]) -> None:
    data = json.dumps({"schema": 1, "stacks": plain_stacks(written)}).encode()
    assert [*of_ourselves(data).stacks] == written


@settings(max_examples=300)
@given(
    st.sampled_from([FAULTHANDLER, PY_SPY, DEBUG_DUMP, DEBUG_PAGE, GDB]),
    st.integers(0, 3000),
    st.integers(0, 40),
    st.text(max_size=10),
)
def test_damage_to_any_of_them_is_read_or_listed(text: str, at: int, cut: int, put: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank_0.txt"
        path.write_text(text[:at] + put + text[at + cut :], errors="replace")
        found, unread = stacks.read([path])
        assert found or unread


def test_of_a_folder_of_attempts_the_latest_that_left_a_stack_is_read(tmp_path: Path) -> None:
    """Each rank of a running attempt keeps an empty file open for its last stack."""
    for number, text in ((1, PY_SPY), (2, "")):
        (tmp_path / f"attempt_{number}").mkdir()
        (tmp_path / f"attempt_{number}" / "rank_0.txt").write_text(text)
    (tmp_path / "rank_0.txt").write_text(FAULTHANDLER)
    found, unread = read(tmp_path)
    assert stacks.frame_of(found[0]) == "train.py:5 wait_for_batch"
    assert unread[0][1].startswith("1 file of an earlier attempt than attempt_1, not read")


ASKS_ITSELF = """
import http.client, sys, threading, time; stands = threading.main_thread().ident
from torch._C._distributed_c10d import _WorkerServer
server = _WorkerServer("127.0.0.1", 0)
def ask():
    while sys._current_frames()[stands].f_code.co_name != "wait_for_batch": time.sleep(0.05)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", "/handler/dump_traceback")
    print(connection.getresponse().read().decode(), flush=True)
    __import__("os")._exit(0)
threading.Thread(target=ask).start()
def wait_for_batch():
    time.sleep(60)
wait_for_batch()
"""


@pytest.mark.slow
def test_what_torchs_own_server_says_is_understood(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    said = subprocess.run(
        [sys.executable, "-c", ASKS_ITSELF], capture_output=True, text=True, timeout=400, check=True
    )
    heading = "=== Rank 4: http://node-0:40000/handler/dump_traceback? ==="
    (tmp_path / "stacks_20261130_031400.txt").write_text(f"{heading}\n{said.stdout}")
    found, unread = read(tmp_path)
    assert unread == []
    assert stacks.frame_of(found[4]) == "<string>:13 wait_for_batch"


@pytest.mark.parametrize(
    "text",
    [
        "#0  " + "a" * 1_000_000,
        "#0 0x1 in x" + "(anonymous " * 100_000,
        "#0 f () at a\nThread 1 (" + "LWP " * 200_000,
        "#0 f (" + ") from " * 100_000,
        "=== Rank 1: x ===\n" + "<pre>" * 200_000,
        "=== Rank 1: x ===\n" * 30_000,
        "=== Rank 1: " * 100_000,
        "PARTIAL DATA:\n" + "  Rank 1: \n" * 50_000,
        '{"schema": 1, "stacks": ' + "[" * 100_000,
    ],
    ids=lambda text: text[:24],
)
def test_the_time_is_bounded_by_the_length_of_the_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "rank_0.txt").write_text(text)
    started = time.process_time()
    found, unread = stacks.read([tmp_path])
    assert time.process_time() - started < 20
    assert found or unread


def test_where_no_server_answered_their_reasons_are_told(tmp_path: Path) -> None:
    (tmp_path / "stacks_1.txt").write_text("PARTIAL DATA: 0/1 workers responded\n  Rank 0: Timeout: x\n")
    found, unread = read(tmp_path)
    assert (found, len(unread)) == ({}, 1)


def test_addresses_of_functions_without_a_name_do_not_part_ranks() -> None:
    """As py-spy --native has them; libraries lie elsewhere in each process."""

    def listed(address: str) -> bytes:
        frames = [{"filename": "libc.so.6", "name": address}, {"filename": "/job/train.py", "name": "main"}]
        return json.dumps([{"pid": 1, "thread_name": "MainThread", "frames": frames}]).encode()

    ranks = [RankStack(rank, 1, None, threads_in(listed(hex(1 << 44 + rank)))[1]) for rank in range(4)]
    text = 'Thread 1 (idle): "MainThread"\n    0x7fe7ed0a3f16 (libc.so.6)\n    main (/job/train.py:0)\n'
    ranks.append(RankStack(4, 1, None, threads_in(text.encode())[1]))
    assert [group.frames for group in stacks.merge(ranks)] == [("libc.so.6:0 ??", "/job/train.py:0 main")]
