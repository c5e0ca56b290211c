"""The Flight Recorder of a real gloo group, dumped while its process lives."""

from __future__ import annotations

import json
import pickle
import socket
import time
from pathlib import Path
from typing import Any

from signals.scripts import begin, events, ready, run_to_end, wait_for

GLOO = """
import torch, torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
def train_step():
    dist.all_reduce(torch.ones(2))
"""


def ask_for(run: Path, what: str, request_id: str = "one") -> None:
    request = {"id": request_id, "t": time.time(), "do": what, "ranks": [0]}
    (run / "requests" / f"{request_id}.json").write_text(json.dumps(request))


def answer(run: Path, request_id: str = "one") -> dict[str, Any]:
    path = run / "requests" / f"{request_id}.rank_0.json"
    content: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
    return content


def test_a_dump_on_request_has_the_stacks_and_the_job_goes_on(tmp_path: Path) -> None:
    process = begin(tmp_path, GLOO + "train_step()\nprint('there', flush=True)\ntime.sleep(60)")
    try:
        ready(process)
        ask_for(tmp_path, "dump")
        wait_for(lambda: answer(tmp_path).get("stacks"))
        assert answer(tmp_path)["path"] == str(tmp_path / "comm_traces" / "rank_0")
        (entry,) = pickle.loads((tmp_path / "comm_traces" / "rank_0").read_bytes())["entries"]
        assert entry["profiling_name"] == "gloo:all_reduce"
        assert "train_step" in [frame["name"] for frame in entry["frames"]]
        assert process.poll() is None
        assert [path.name for path in (tmp_path / "comm_traces").iterdir()] == [
            "rank_0"
        ]  # no half-written file
    finally:
        process.kill()
        process.communicate()


def test_torch_takes_the_size_of_the_ring_from_us(tmp_path: Path) -> None:
    script = """
for _ in range(2500):
    train_step()
from train_ledger.signals.asking.recorder import write_dump
write_dump(monitor.run_dir.comm_trace_of(0), with_stacks=False)
"""
    ended = run_to_end(tmp_path, GLOO + script)
    assert ended.returncode == 0
    assert "deprecat" not in ended.stderr.lower()
    dump = pickle.loads((tmp_path / "comm_traces" / "rank_0").read_bytes())
    assert len(dump["entries"]) == 2500  # torch's own ring holds 2000


def test_the_worker_server_answers_while_c_code_holds_the_lock(tmp_path: Path) -> None:
    hold_the_lock = """
train_step()
import ctypes
print("there", flush=True)
ctypes.PyDLL(None).sleep(300)
"""
    process = begin(tmp_path, GLOO + hold_the_lock, {"TRAIN_LEDGER_WORKER_SERVER": "1"})
    try:
        ready(process)
        wait_for(lambda: events(tmp_path, "run_start"))
        place = str(events(tmp_path, "run_start")[0]["worker_server"])
        trace = json.loads(post(place, "/handler/fr_trace_json"))
        assert trace["entries"][0]["profiling_name"] == "gloo:all_reduce"
    finally:
        process.kill()
        process.communicate()


def test_the_worker_server_does_not_keep_the_process(tmp_path: Path) -> None:
    may_end = tmp_path / "may_end"
    serve = f"print('there', flush=True)\nwhile not os.path.exists({str(may_end)!r}): time.sleep(0.02)"
    process = begin(tmp_path, serve, {"TRAIN_LEDGER_WORKER_SERVER": "1"})
    ready(process)
    wait_for(lambda: events(tmp_path, "run_start"))
    place = str(events(tmp_path, "run_start")[0]["worker_server"])
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place.removeprefix("unix:"))  # a client that stays
    may_end.touch()
    assert process.wait(60) == 0
    connection.close()


def test_a_path_too_long_for_a_socket_becomes_a_loopback_port(tmp_path: Path) -> None:
    run = tmp_path / ("long" * 30)
    process = begin(run, "print('there', flush=True)\ntime.sleep(60)", {"TRAIN_LEDGER_WORKER_SERVER": "1"})
    try:
        ready(process)
        wait_for(lambda: events(run, "run_start"))
        place = str(events(run, "run_start")[0]["worker_server"])
        assert place.startswith("tcp:127.0.0.1:")
        assert json.loads(post(place, "/handler/fr_trace_json"))["version"]
    finally:
        process.kill()
        process.communicate()


def post(place: str, path: str) -> bytes:
    """One POST to a worker server; the body of the answer."""
    kind, _, address = place.partition(":")
    if kind == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address)
    else:
        host, _, port = address.partition(":")
        connection = socket.create_connection((host, int(port)), timeout=60)
    connection.settimeout(60)
    with connection:
        connection.sendall(f"POST {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n".encode())
        received = b""
        while chunk := connection.recv(1 << 16):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.split()[1] == b"200", head
    return body
