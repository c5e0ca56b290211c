"""Dumps of living ranks: by their monitors, by pipes, over a launcher, and from nobody."""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import socket
import subprocess
import sys
import tarfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner, Result

from hang.recorder import Job
from train_ledger.cli import app
from train_ledger.run_dir import RunDir, write_atomically

HOST = socket.gethostname()


def dump(*arguments: str | Path | float) -> Result:
    return CliRunner().invoke(app, ["dump", *map(str, arguments)], catch_exceptions=False)


def content(rank: int, world: int = 2) -> bytes:
    job = Job(world)
    job.issue(range(world), done=True)
    return pickle.dumps(job.content(rank), protocol=2)


def run_of(folder: Path, ranks: int, host: str = HOST) -> RunDir:
    run = RunDir(folder)
    for rank in range(ranks):
        start = {"t": time.time(), "event": "run_start", "rank": rank, "host": host, "world_size": ranks}
        run.signals.mkdir(exist_ok=True, parents=True)
        run.signals_of(rank).write_text(json.dumps(start) + "\n")
    return run


@contextmanager
def monitors(run: RunDir, dumps: dict[int, bytes | str]) -> Iterator[None]:
    """Answer every request as the ranks' monitors do; a text is the error of a rank that cannot."""
    ending = threading.Event()

    def answer(path: Path) -> None:
        asked = json.loads(path.read_bytes())
        for rank in set(dumps).intersection(asked["ranks"]):
            data = dumps[rank]
            if isinstance(data, bytes):
                write_atomically(run.comm_trace_of(rank), data)
            said = {"ok": True} if isinstance(data, bytes) else {"ok": False, "error": data}
            write_atomically(run.reply(asked["id"], rank), json.dumps(said).encode())

    def watch() -> None:
        seen: set[Path] = set()
        while not ending.wait(0.02):
            for path in run.requests.glob("dump-*.json"):
                if ".rank_" not in path.name and path not in seen:
                    seen.add(path)
                    answer(path)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def test_all_are_there(tmp_path: Path) -> None:
    run = run_of(tmp_path, 2)
    with monitors(run, {0: content(0), 1: content(1)}):
        told = dump(tmp_path)
    assert told.exit_code == 0
    assert told.stdout.startswith("the dumps of all 2 ranks are there, in ")
    assert f"train-ledger hang {tmp_path}/comm_traces" in told.stdout


def test_whose_is_missing_is_told_with_the_reason(tmp_path: Path) -> None:
    run = run_of(tmp_path, 4)
    with monitors(run, {0: content(0, 4), 1: content(1, 4)[:-30], 2: "torch is not imported"}):
        told = dump(tmp_path, "--json", "--timeout-s", 1)
    answer = json.loads(told.stdout)
    assert (told.exit_code, answer["dumped"], answer["by"]) == (1, [0], {"0": "its monitor"})
    missing = {it["rank"]: it["why"] for it in answer["missing"]}
    assert "rank_1: truncated" in missing[1]
    assert missing[2] == "torch is not imported"
    assert missing[3].startswith("no answer in 1 s")


def test_where_nobody_answers_it_cannot_tell(tmp_path: Path) -> None:
    run_of(tmp_path, 2)
    told = dump(tmp_path, "--timeout-s", 0.3)
    assert told.exit_code == 3
    assert told.stdout.startswith("no dump in ")
    assert ": ranks 0-1 did not answer\n" in told.stdout


def test_a_run_without_ranks_says_so(tmp_path: Path) -> None:
    told = dump(tmp_path, "--timeout-s", 0.3)
    assert told.exit_code == 3
    assert "no rank of the run is known on this host: none has written a line" in told.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["fifo", "endless", "large", "deep"])
def test_what_is_no_reply_is_told_and_nothing_waits_for_it(tmp_path: Path, kind: str) -> None:
    run = run_of(tmp_path, 1)
    run.requests.mkdir()
    with (
        patch.object(uuid, "uuid4", return_value=uuid.UUID(int=0)),
        patch.object(time, "time", return_value=1e9),
    ):
        reply = run.reply("dump-1000000000-00000000", 0)
        if kind == "fifo":
            os.mkfifo(reply)
        elif kind == "endless":
            reply.symlink_to("/dev/zero")
        else:
            reply.write_text("[" * (100_000 if kind == "deep" else 2_000_000))
        told = dump(tmp_path, "--timeout-s", 0.3, "--json")
    (missing,) = json.loads(told.stdout)["missing"]
    assert told.exit_code == 3
    wanted = {
        "fifo": "is a FIFO",
        "endless": "is a device",
        "large": "is larger than 1 MiB",
        "deep": "no answer",
    }
    assert wanted[kind] in missing["why"]


def test_what_is_no_run_is_wrong_usage(tmp_path: Path) -> None:
    assert dump(tmp_path / "nowhere").exit_code == 2


NCCL = """
import os, sys, time
rank = os.environ["RANK"]
pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + rank + ".pipe"
os.mkfifo(pipe)
fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
print("up", flush=True)
while not os.read(fd, 128):
    time.sleep(0.05)
with open(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + rank, "wb") as file:
    file.write(bytes.fromhex(sys.argv[1]))
time.sleep(60)
"""


@contextmanager
def nccl_job(folder: Path, dumps: Path, run_id: str) -> Iterator[None]:
    """Two ranks without a monitor, which watch pipes as NCCL's process group does."""
    with ExitStack() as stack:
        for rank in range(2):
            variables = {
                "RANK": str(rank),
                "TORCHELASTIC_RUN_ID": run_id,
                "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{folder}/pipe_",
                "TORCH_FR_DUMP_TEMP_FILE": f"{dumps}/rank_",
            }
            command = [sys.executable, "-c", NCCL, content(rank).hex()]
            process = stack.enter_context(
                subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.PIPE)
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
        yield


def test_a_job_without_monitors_is_dumped_by_its_pipes(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    (run.path / "comm_traces").mkdir(parents=True)
    with nccl_job(tmp_path, run.comm_traces(), "tl-pipes"):
        told = json.loads(dump(run.path, "--json", "--timeout-s", 1).stdout)
    assert (told["dumped"], told["missing"]) == ([0, 1], [])
    assert told["by"] == {"0": "its pipe", "1": "its pipe"}


def test_another_jobs_dumps_are_not_taken_for_those_of_this_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir()
    with nccl_job(tmp_path, tmp_path / "elsewhere", "tl-other"):
        told = dump(tmp_path / "run", "--timeout-s", 0.5)
        named = dump(tmp_path / "run", "--timeout-s", 1, "--job", "tl-other")
    assert told.exit_code == 3
    assert "name that job with --job" in told.stdout
    assert named.exit_code == 0
    assert sorted(it.name for it in (tmp_path / "run" / "comm_traces").iterdir()) == ["rank_0", "rank_1"]


# Many hosts


REACH = """
case "$1" in
  junk) echo "<html>maintenance</html>";;
  lies) echo '{"schema": 1, "dumped": [7], "missing": [], "archive": "!!"}';;
  down) echo "No route to host" >&2; exit 255;;
  hostile) cat "$3/hostile";;
  *) eval "$2";;
esac
"""


def test_the_dumps_of_all_hosts_are_gathered_and_it_says_who_failed(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 2)
    (tmp_path / "reach").write_text(REACH)
    launcher = f"sh {tmp_path}/reach {{host}} {{command}} {tmp_path}"
    with monitors(run, {0: content(0), 1: content(1)}):
        told = dump(
            run.path, "--launcher", launcher, "--hosts", f"{HOST},junk,down,lies", "--into", tmp_path / "all"
        )
    assert told.exit_code == 1
    assert told.stdout.startswith("2 dumps are there, in ")
    assert "; no answer from down, junk, lies\n" in told.stdout
    assert "down: ended with status 255: No route to host" in told.stdout
    assert "junk: it answered, but no dumps: '<html>maintenance</html>'" in told.stdout
    assert "lies: it sent no dumps as it should" in told.stdout
    assert {it.name: it.read_bytes() for it in (tmp_path / "all").iterdir()} == {
        f"rank_{rank}": content(rank) for rank in range(2)
    }


def test_all_hosts_answered_and_every_rank_is_there(tmp_path: Path) -> None:
    run = run_of(tmp_path, 2)
    with monitors(run, {0: content(0), 1: content(1)}):
        told = dump(tmp_path, "--launcher", "sh -c {command}", "--json")
    answer = json.loads(told.stdout)
    assert (told.exit_code, answer["dumped"], list(answer["hosts_s"])) == (0, [0, 1], [HOST])
    assert answer["folder"] == f"{tmp_path}/comm_traces"


@pytest.mark.parametrize("slow", ["a", "b"])
def test_of_two_hosts_that_send_one_rank_the_first_named_is_believed(tmp_path: Path, slow: str) -> None:
    for host, data in (("a", content(0)), ("b", content(0, 3))):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            member = tarfile.TarInfo("rank_0")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        sent = {"dumped": [0], "missing": [], "archive": base64.b64encode(packed.getvalue()).decode()}
        (tmp_path / host).write_text(json.dumps({"schema": 1, **sent}) + "\n")
    (tmp_path / "reach").write_text(f'[ "$1" = {slow} ] && sleep 0.5; cat {tmp_path}/"$1"')
    run = run_of(tmp_path / "run", 1)
    launcher = f"sh {tmp_path}/reach {{host}} {{command}}"
    told = dump(run.path, "--launcher", launcher, "--hosts", "a,b", "--json")
    answer = json.loads(told.stdout)
    assert answer["unreadable"] == [{"file": "b: rank 0", "why": "came from a, too"}]
    assert run.comm_trace_of(0).read_bytes() == content(0)


def test_a_rank_of_whom_no_host_tells_is_missing(tmp_path: Path) -> None:
    run_of(tmp_path, 2)
    told = dump(tmp_path, "--launcher", "sh -c {command}", "--hosts", "x", "--timeout-s", 0.3, "--json")
    assert told.exit_code == 3
    assert [it["rank"] for it in json.loads(told.stdout)["missing"]] == [0, 1]


def test_what_a_hostile_host_sends_stays_in_its_place(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name in ("../../rank_7", "rank_7", "rank_0"):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
        link = tarfile.TarInfo("rank_8")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    sent = {"dumped": [7, 8], "missing": [], "archive": base64.b64encode(packed.getvalue()).decode()}
    (tmp_path / "hostile").write_text(json.dumps({"schema": 1, **sent}) + "\n")
    (tmp_path / "reach").write_text(REACH)
    told = dump(
        run_of(tmp_path / "run", 1).path,
        *("--launcher", f"sh {tmp_path}/reach {{host}} {{command}} {tmp_path}", "--hosts", "hostile"),
        *("--into", tmp_path / "all", "--json"),
    )
    answer = json.loads(told.stdout)
    assert [it.name for it in (tmp_path / "all").iterdir()] == ["rank_7"]
    assert {it["rank"]: it["why"] for it in answer["missing"]} == {
        0: "no host sent it",
        7: "no Flight Recorder dump: neither a pickle nor JSON",
        8: "on hostile: it was there, but did not come through",
    }
    assert not list(tmp_path.parent.glob("rank_7"))


# A real job


@pytest.mark.slow
def test_a_real_job_that_hangs_leaves_every_dump_and_lives_on(tmp_path: Path) -> None:
    """Three ranks of gloo; the culprit holds the interpreter's lock, so that only torch's server answers."""
    run = RunDir(tmp_path / "r42")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"]
    command += ["-m", "train_ledger.chaos.hang_drill", "--run-dir", str(run.path)]
    command += ["--mode", "lock_gil", "--culprit", "2", "--hang-at", "60", "--worker-server"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        try:
            _wait_until_hung(run, 3)
            told = dump(run.path, "--json", "--timeout-s", 60)
            over = dump(run.path, "--json", "--launcher", "sh -c {command}", "--into", tmp_path / "all")
            hang = CliRunner().invoke(app, ["hang", str(tmp_path / "all"), "--json"])
            assert job.poll() is None, "nobody was ended"
        finally:
            job.terminate()
            job.wait(180)
    answer = json.loads(told.stdout)
    assert (told.exit_code, answer["dumped"], answer["missing"]) == (0, [0, 1, 2], [])
    assert answer["by"] == {"0": "its monitor", "1": "its monitor", "2": "its worker server"}
    assert (over.exit_code, json.loads(over.stdout)["dumped"]) == (0, [0, 1, 2])
    assert json.loads(hang.stdout)["culprits"] == [2]


def _wait_until_hung(run: RunDir, ranks: int) -> None:
    """The culprit's own lines may have got stuck with it, but for the first ones."""
    deadline, before = time.monotonic() + 400, None
    while time.monotonic() < deadline:
        time.sleep(2)
        written = [path.read_bytes() for _, path in run.signal_files()]
        now = [text.count(b'"step":') for text in written]
        if sum(b"run_start" in text for text in written) == ranks and now == before and max(now) >= 59:
            return
        before = now
    raise AssertionError("the job did not come to its hang")


@pytest.mark.parametrize("archive", ["\u00fc", "!", "\\ud800", "AAA"])
def test_what_is_no_base64_is_told(tmp_path: Path, archive: str) -> None:
    run_of(tmp_path, 1)
    (tmp_path / "said").write_text(f'{{"schema":1,"dumped":[0],"missing":[],"archive":"{archive}"}}\n')
    told = dump(tmp_path, "--launcher", f"sh -c 'cat {tmp_path}/said' {{argv}}", "--hosts", "a")
    assert told.exit_code == 3
    assert "a: it sent no dumps as it should" in told.stdout
