"""Where real processes stand."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner, Result

from train_ledger.cli import app

PROGRAM = '''
import sys, time
def wait_for_batch():
    print("up", flush=True)
    time.sleep(60)
IN_TORCH = """
def all_reduce():
    print("up", flush=True)
    time.sleep(60)
"""
exec(compile(IN_TORCH, "torch/distributed/distributed_c10d.py", "exec"))
def train():
    all_reduce() if sys.argv[1] == "collective" else wait_for_batch()
train()
'''


@contextmanager
def _process(script: Path, where: str, **variables: str) -> Iterator[int]:
    command = [sys.executable, str(script), where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **variables}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture(scope="module")
def pids(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    """Three processes, of which the last stands elsewhere."""
    script = tmp_path_factory.mktemp("stacks") / "train.py"
    script.write_text(PROGRAM)
    with (
        _process(script, "collective") as first,
        _process(script, "collective") as second,
        _process(script, "loader") as third,
    ):
        yield [first, second, third]


def _stacks(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(app, ["stacks", *map(str, arguments)], catch_exceptions=False)


def _run_of(folder: Path, pids: list[int], host: str) -> Path:
    for rank, pid in enumerate(pids):
        start = {"t": 1.0, "event": "run_start", "rank": rank, "attempt": 0, "host": host, "pid": pid}
        (folder / "signals").mkdir(exist_ok=True)
        (folder / "signals" / f"rank_{rank:05d}.jsonl").write_text(json.dumps(start) + "\n")
    return folder


def test_the_odd_rank_of_a_run_comes_first(pids: list[int], tmp_path: Path) -> None:
    told = _stacks(_run_of(tmp_path, pids, socket.gethostname()))
    assert told.exit_code == 0
    assert told.stdout.startswith(
        "rank 2 stands apart: 2 different stacks of 3 ranks\n\n"
        "rank 2, thread MainThread: waits for its data loader\n"
    )
    assert "wait_for_batch" in told.stdout.split("ranks 0-1")[0]
    assert f"train-ledger diagnose {tmp_path}" in told.stdout


def test_ranks_jsonl_is_enough(pids: list[int], tmp_path: Path) -> None:
    lines = [
        json.dumps({"t": 1.0, "rank": rank, "host": socket.gethostname(), "pid": pid})
        for rank, pid in enumerate(pids)
    ]
    (tmp_path / "ranks.jsonl").write_text("\n".join([*lines, '{"half']))
    told = json.loads(_stacks(tmp_path, "--json").stdout)
    assert [group["ranks"] for group in told["groups"]] == [[2], [0, 1]]
    assert told["schema"] == 1


def test_the_later_attempt_counts(pids: list[int], tmp_path: Path) -> None:
    run = _run_of(tmp_path, [1 << 22, 1 << 22, 1 << 22], socket.gethostname())
    for rank, pid in enumerate(pids):
        again = {
            "t": 0.5,
            "event": "run_start",
            "rank": rank,
            "attempt": 1,
            "host": socket.gethostname(),
            "pid": pid,
        }
        with (run / "signals" / f"rank_{rank:05d}.jsonl").open("a") as file:
            file.write(json.dumps(again) + "\n")
    told = json.loads(_stacks(run, "--json").stdout)
    assert told["unreadable"] == []


def test_processes_by_number(pids: list[int], tmp_path: Path) -> None:
    gone = 1 << 22
    told = _stacks(*(f"--pid={pid}" for pid in [*pids, gone]), "--save", tmp_path / "kept")
    assert told.stdout.startswith(f"pid {pids[2]} stands apart: 2 different stacks of 3 pids\n")
    assert f"  - pid {gone}: " in told.stdout, "what was not taken is told"
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == sorted(
        f"rank_{pid}.json" for pid in pids
    )
    again = _stacks("--from", tmp_path / "kept")
    assert "2 different stacks of 3 ranks" in again.stdout


def test_where_nothing_can_be_taken_it_cannot_tell() -> None:
    told = _stacks("--pid", 1 << 22)
    assert told.exit_code == 3
    assert told.stdout.startswith("cannot tell, because no stack could be read\n")


def test_ranks_of_other_hosts_are_looked_for_there(pids: list[int], tmp_path: Path) -> None:
    told = _stacks(_run_of(tmp_path, pids, "node-7"))
    assert told.exit_code == 2
    assert "run this on node-7" in told.stderr


def test_stacks_of_a_hostile_name_move_nothing(tmp_path: Path) -> None:
    (tmp_path / "rank_0.txt").write_text(
        'Process 1: x\n\nThread 1 (idle): "MainThread"\n    a\x1b[2Jb (x\x07y.py:3)\n'
    )
    told = _stacks("--from", tmp_path)
    assert "\x1b" not in told.stdout
    assert "\x07" not in told.stdout
    assert os.linesep.join(["    x\ufffdy.py:3 ab"]) in told.stdout


@pytest.mark.parametrize(
    "line", ['{"rank":1e400}', "[" * 100_000, '{"rank":0,"pid":1,"t":1' + "0" * 400 + "}"]
)
def test_a_bad_line_of_ranks_jsonl_costs_only_itself(line: str, pids: list[int], tmp_path: Path) -> None:
    good = {"t": 1.0, "rank": 1, "host": socket.gethostname(), "pid": pids[0]}
    (tmp_path / "ranks.jsonl").write_text(f"{line}\n{json.dumps(good)}\n")
    told = json.loads(_stacks(tmp_path, "--json").stdout)
    assert [group["ranks"] for group in told["groups"]] == [[1]]


def test_what_was_not_read_on_the_way_is_told(pids: list[int], tmp_path: Path) -> None:
    run = _run_of(tmp_path, pids[:1], socket.gethostname())
    os.mkfifo(run / "ranks.jsonl")
    (run / "signals" / "rank_00001.jsonl").write_text("garbage\n")
    told = _stacks(run)
    assert "ranks.jsonl: is a FIFO" in told.stdout
    assert "signals: 1 × not_a_file (ranks.jsonl), 1 × not_json (signals/rank_00001.jsonl:1)" in told.stdout


# Ranks by their environment, and on other hosts


@contextmanager
def _job(script: Path, run_id: str, *where: str, first: int = 0) -> Iterator[list[int]]:
    """A process a rank, as torchrun starts them."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(_process(script, it, RANK=str(rank), TORCHELASTIC_RUN_ID=run_id))
            for rank, it in enumerate(where, first)
        ]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("job") / "train.py"
    path.write_text(PROGRAM)
    return path


def test_without_a_run_the_ranks_are_found_by_their_environment(script: Path) -> None:
    with _job(script, "tl-found", "collective", "collective", "loader"):
        told = json.loads(_stacks("--job", "tl-found", "--json").stdout)
    assert [group["ranks"] for group in told["groups"]] == [[2], [0, 1]]
    assert told["apart"] == [2]
    assert [group["stand"]["kind"] for group in told["groups"]] == ["loader", "collective"]
    assert told["tree"]["ranks"] == "0-2"
    assert [(it["ranks"], it["count"]) for it in told["tree"]["children"]] == [("2", 1), ("0-1", 2)]


def test_two_jobs_are_not_mixed(script: Path) -> None:
    with _job(script, "tl-one", "loader"), _job(script, "tl-two", "loader"):
        mixed = _stacks()
        unknown = _stacks("--job", "tl-three")
    assert (mixed.exit_code, unknown.exit_code) == (2, 2)
    assert "are not mixed; name one with --job" in mixed.stderr
    assert "no job here is called 'tl-three'" in unknown.stderr


NO_STACKS = "no stacks as `train-ledger stacks --json --full` writes them"
FAKE_HOSTS = """
case "$1" in
  greets) echo "Welcome to node $1 {"; eval "$2"; echo bye;;
  junk) echo "<html>maintenance</html>";;
  old) echo '{"schema": 1, "groups": []}';;
  lies) echo '{"schema": 1, "stacks": [{"rank": "5"}]}';;
  down) echo "ssh: connect to host down port 22: No route to host" >&2; exit 255;;
  hangs) sleep 60;;
esac
"""


def test_hosts_that_fail_hang_or_print_junk_are_listed_and_stop_nothing(script: Path, tmp_path: Path) -> None:
    (tmp_path / "reach").write_text(FAKE_HOSTS)
    launcher = f"sh {tmp_path}/reach {{host}} {{command}}"
    with (
        _job(script, "tl-hosts", "collective", "collective", "loader"),
        mock.patch("train_ledger.cli.stacks._LAUNCHER_SLACK_S", 5),
    ):
        hosts = "hangs,junk,greets,down,lies,old"
        told = _stacks("--job", "tl-hosts", "--launcher", launcher, "--hosts", hosts, "--timeout-s", "5")
    assert told.exit_code == 0
    assert told.stdout.startswith("rank 2 stands apart: 2 different stacks of 3 ranks\n")
    assert told.stdout.split("not read\n")[1] == (
        "  - hangs: no answer within 10 s\n"
        "  - junk: it answered, but no stacks: '<html>maintenance</html>'\n"
        "  - down: ended with status 255: ssh: connect to host down port 22: No route to host\n"
        f"  - lies: {NO_STACKS}: Expected `int`, got `str` - at `$.stacks[0].rank`\n"
        f"  - old: {NO_STACKS}: Object missing required field `stacks`\n"
    )


def test_a_run_says_its_hosts_itself_and_what_they_say_is_kept(pids: list[int], tmp_path: Path) -> None:
    run, kept = tmp_path / "r42", tmp_path / "kept"
    run.mkdir()
    _run_of(run, pids, socket.gethostname())
    told = _stacks(run, "--launcher", "sh -c {command}", "--save", kept)
    assert told.stdout.startswith("rank 2 stands apart: 2 different stacks of 3 ranks\n")
    assert "not read" not in told.stdout
    assert [it.name for it in kept.iterdir()] == [f"{socket.gethostname()}.json"]
    again = _stacks("--from", kept)
    assert again.stdout.startswith("rank 2 stands apart: 2 different stacks of 3 ranks\n")


def test_a_rank_that_two_hosts_claim_is_told_once(script: Path) -> None:
    with _job(script, "tl-twice", "collective", "loader"):
        told = json.loads(
            _stacks(
                *("--job", "tl-twice", "--json", "--hosts", "a,b"),
                *("--launcher", "env REACHED={host} sh -c {command}"),
            ).stdout
        )
    assert sorted(rank for group in told["groups"] for rank in group["ranks"]) == [0, 1]
    assert {it["file"]: it["why"] for it in told["unreadable"]} == {
        "b: rank 0": "is on a, too",
        "b: rank 1": "is on a, too",
    }


def test_hosts_of_two_jobs_are_not_merged(script: Path, tmp_path: Path) -> None:
    (tmp_path / "reach").write_text(
        f'exec {sys.executable} -m train_ledger stacks --json --full --job "tl-node-$1"\n'
    )
    launcher = f"sh {tmp_path}/reach {{host}} {{command}}"
    with _job(script, "tl-node-a", "loader"), _job(script, "tl-node-b", "loader", first=1):
        told = _stacks("--launcher", launcher, "--hosts", "a,b")
    assert told.exit_code == 2
    assert "run id tl-node-a on a; run id tl-node-b on b" in told.stderr


def test_stacks_from_several_places_are_merged(tmp_path: Path) -> None:
    (tmp_path / "rank_0.txt").write_text('Thread 1 (idle): "MainThread"\n    f (a.py:1)\n')
    other = tmp_path / "other"
    other.mkdir()
    (other / "rank_1.txt").write_text('Thread 1 (idle): "MainThread"\n    f (a.py:1)\n')
    told = _stacks("--from", tmp_path / "rank_0.txt", "--from", other)
    assert told.stdout.startswith("all stacks are equal: ranks 0-1\n")


TRAINS = """
import os, sys, time
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 100
    def __getitem__(self, index):
        time.sleep(3600 if os.environ["RANK"] == "1" and index >= 2 else 0)
        return index

dist.init_process_group("gloo")
for batch in DataLoader(Slow(), num_workers=2):
    dist.all_reduce(torch.ones(1))
"""


@pytest.mark.slow
def test_of_a_real_job_with_loader_workers_the_ranks_alone_are_taken(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3"]
    command += ["--rdzv-id", "tl-loader"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", str(tmp_path / "train.py")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        try:
            told = _until_apart("--job", "tl-loader", "--native", "--json")
        finally:
            job.terminate()
            job.wait(180)
    assert told["apart"] == [1]
    stands = {rank: group["stand"]["kind"] for group in told["groups"] for rank in group["ranks"]}
    assert stands == {0: "collective", 1: "loader", 2: "collective"}
    assert told["unreadable"] == []


def _until_apart(*arguments: str) -> dict[str, Any]:
    """What is said of the job once both ranks stand where they will stay."""
    deadline = time.monotonic() + 400
    told: dict[str, Any] = {}
    while time.monotonic() < deadline:
        answer = _stacks(*arguments)
        told = json.loads(answer.stdout) if answer.exit_code == 0 else {}
        kinds = {group["stand"]["kind"] for group in told.get("groups", ())}
        if kinds == {"collective", "loader"}:
            return told
        time.sleep(1)
    raise AssertionError(f"the job did not come to its hang: {told}")


def test_where_frames_of_c_cannot_be_had_those_of_python_are_taken(
    pids: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    (tmp_path / "py-spy").write_text(
        '#!/bin/sh\ncase "$*" in *--native*) echo "Error: no libunwind here" >&2; exit 1;; esac\n'
        f'exec {real} "$@"\n'
    )
    (tmp_path / "py-spy").chmod(0o755)
    monkeypatch.setattr("train_ledger.hang.stacks.py_spy._program", lambda: str(tmp_path / "py-spy"))
    told = _stacks("--pid", pids[2], "--native")
    assert told.stdout.startswith(f"all stacks are equal: pid {pids[2]}\n")
    assert f"  - pid {pids[2]}: without frames of C: Error: no libunwind here\n" in told.stdout
