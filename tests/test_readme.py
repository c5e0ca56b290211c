"""The README is true: every block of it is executed, or held by a test that is named here.

Placeholders of the README – hosts, ports, /path/to – are replaced by what this test has. Programs that a
cluster has and this machine has not are stood in for on PATH: `srun` runs its command, `pip` looks whether
what it is asked for is there to be had, `make` says what it would do (tests/chaos/test_demo.py does it, and
holds what is shown of its output; `make test` is this suite). Blocks of toml are read by tests/test_docs.py.
"""

from __future__ import annotations

import ast
import contextlib
import http.server
import json
import re
import shutil
import sys
import threading
import tomllib
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from hang.recorder import Job
from readme import CHINESE, FRAMEWORKS, HANG, LOOP, README, ROOT
from shell import Shell, blocks, commands, indented
from train_ledger.chaos.servers import free_port
from waiting import wait_until

COMMANDS = [command for block in indented(README) for command in commands(block)]


@dataclass(frozen=True)
class Expected:
    """How a command of the README begins, what it says, and which exit status it may have."""

    begins: str
    says: str
    status: tuple[int, ...] = (0,)


EXPECTED = (
    Expected("make demo", "train-ledger demo"),
    Expected("make test", "tools/run_tests.sh"),
    Expected("pip install .  ", "would install train-ledger"),
    Expected("pip install --no-deps", "would install train-ledger without what it depends on"),
    Expected("pip install '.[deploy]'", "would install train-ledger with deploy"),
    Expected("train-ledger read", "step", status=(1,)),
    Expected("train-ledger gantt", "gantt.json.gz"),
    Expected("train-ledger watch", ""),
    Expected("srun", ""),
    Expected("train-ledger deploy", "alerts.yml"),
    Expected("train-ledger lint", "can never fire", status=(1,)),
    Expected("train-ledger drill page", ""),
    Expected("train-ledger backtest", "r42"),
    Expected("train-ledger slow", "slow.data", status=(0, 1, 3)),
    Expected("train-ledger trace take", "nothing of a GPU was recorded"),
    Expected("train-ledger hang", "culprit: rank 0", status=(1,)),
)


def expected(command: str) -> Expected:
    found = [it for it in EXPECTED if command.startswith(it.begins)]
    assert len(found) == 1, f"say in EXPECTED what {command!r} does"
    return found[0]


def test_of_every_command_it_is_said_what_it_does() -> None:
    assert [expected(it) for it in COMMANDS] == list(EXPECTED)


# -- a run, and what a cluster would have besides

STAND_INS = {
    "srun": '#!/bin/sh\nwhile case "$1" in --*) true;; *) false;; esac; do shift; done\nexec "$@"\n',
    "make": '#!/bin/sh\nexec "$REAL_MAKE" -n -C "$ROOT" "$@"\n',
    "pip": f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/test_readme.py "$@"\n',
}
TRAINING = """
import itertools, time, torch, torch.distributed as dist

loader = itertools.repeat(torch.ones(8))

def train(batch):
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    dist.all_reduce(batch.clone())
    time.sleep(0.04)
    return 2.5
"""
HUGGING_FACE = {"log_history": [{"step": 10, "loss": 2.5}, {"step": 20, "loss": 2.25}], "global_step": 20}
SLURM = """step 10 loss 2.31
slurmstepd: error: *** JOB 1984 ON node1 CANCELLED AT 2026-11-30T03:12:00 DUE TO TIME LIMIT ***
"""
CARDS = 'DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-1",Hostname="node1"} 1980\n'
CONFIGURED = """
[notify]
command = ["cp", "/dev/stdin", "{rung}"]
"""


def pip(arguments: list[str]) -> str:
    """What pip would do, were this the environment of somebody."""
    verb, target = arguments[0], arguments[-1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.fullmatch(r"\.(?:\[(\w+)\])?", target)
    assert verb == "install"
    assert found, target
    assert found[1] is None or found[1] in project["optional-dependencies"]
    bare = " without what it depends on" if "--no-deps" in arguments else ""
    return f"would install {project['name']}{bare}{f' with {found[1]}' if found[1] else ''}"


def order_swap(folder: Path) -> None:
    """Dumps of four ranks, of which one issues two operations in the other order."""
    size, started = ((4, 4),), {"state": "started", "time_discovered_started_ns": 1}
    job = Job(4)
    job.issue(range(4), size=size, done=True)
    job.issue([1, 2, 3], "broadcast", size=size, more=started)
    job.issue([0], size=size, more=started)
    job.issue([1, 2, 3], size=size)
    job.issue([0], "broadcast", size=size)
    job.write(folder)


@contextlib.contextmanager
def cards() -> Iterator[int]:
    """A dcgm-exporter that tells of one clock; its port."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CARDS.encode())

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    stand_ins = tmp_path / "bin"
    stand_ins.mkdir()
    for name, text in STAND_INS.items():
        (stand_ins / name).write_text(text)
        (stand_ins / name).chmod(0o755)
    settings = tmp_path / "config" / "train-ledger"
    settings.mkdir(parents=True)
    (settings / "train-ledger.toml").write_text(CONFIGURED.format(rung=tmp_path / "rung.json"))
    environ = {
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "ROOT": str(ROOT),
        "REAL_MAKE": shutil.which("make") or "make",
    }
    started = Shell(tmp_path, first=stand_ins, environ=environ)
    yield started
    started.close()


def files(folder: Path) -> None:
    """What the README's commands read and no command of it makes."""
    (folder / "train.py").write_text(TRAINING + LOOP)
    (folder / "slurm-1984.out").write_text(SLURM)
    (folder / "trainer_state.json").write_text(json.dumps(HUGGING_FACE))
    (folder / "structured_logs").mkdir()
    shutil.copy(
        ROOT / "tests" / "recorded" / "logs" / "torchtitan_two_stages.log", folder / "structured_logs"
    )
    order_swap(folder / "path" / "dumps")
    for name in ("torchrun/logs", "stacks"):
        (folder / "path" / name).mkdir(parents=True)


def served(port: int, path: str) -> str:
    def answer() -> bytes:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as got:
                return got.read()  # type: ignore[no-any-return]
        except OSError:
            return b""

    wait_until(answer, 60.0, f"for {path}")
    return answer().decode()


def has_step(run: Path, number: int) -> bool:
    path = run / "signals" / "rank_00003.jsonl"
    return path.exists() and f'"step":{number},' in path.read_text()


@pytest.mark.slow
def test_every_command_as_it_stands(tmp_path: Path, shell: Shell) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    files(tmp_path)
    page, metrics = free_port(), free_port()
    with cards() as of_cards:
        here = {
            "/path/to": str(tmp_path / "path"),
            "node1:9400": f"127.0.0.1:{of_cards}",
            "--url node1:9466": f"--url 127.0.0.1:{metrics}",
            "watch runs/r42": f"watch runs/r42 --port {page} &",
            "--record-hardware &": f"--record-hardware --port {metrics} &",
            "drill page --run runs/r42 --configured": "drill page --run runs/r42 --configured &",
        }
        shell.type("torchrun --standalone --nproc-per-node 4 train.py &")
        wait_until(lambda: has_step(tmp_path / "runs" / "r42", 125), 90.0, "for 125 steps")
        for command in COMMANDS:
            typed = command
            for placeholder, ours in here.items():
                typed = typed.replace(placeholder, ours)
            if command.startswith("train-ledger trace take"):  # which wants the machine for itself
                wait_until((tmp_path / "rung.json").exists, 120.0, "for the pager of the drill")
            said, as_expected = shell.type(typed), expected(command)
            assert shell.status in as_expected.status, f"{typed}\n{said}"
            assert as_expected.says in said, f"{typed}\n{said}"
            if command.startswith("train-ledger watch"):
                assert "r42" in served(page, "/")
            if command.startswith("srun"):
                assert 'train_step{run="r42"' in served(metrics, "/metrics")
            if command.startswith("train-ledger hang"):
                assert HANG in said


# -- blocks that are no commands


def test_what_frameworks_are_told_to_import_is_there() -> None:
    """That they train so is held by tests/signals/integrations, with the real libraries and examples/."""
    imported = [it for it in ast.walk(ast.parse(FRAMEWORKS)) if isinstance(it, ast.ImportFrom)]
    assert {str(it.module).rpartition(".")[2] for it in imported} == {
        "hf", "lightning", "accelerate", "deepspeed", "megatron",
    }  # fmt: skip
    for it in imported:
        found = find_spec(str(it.module))
        assert found is not None, it.module
        assert found.origin is not None
        text = Path(found.origin).read_text()
        assert all(re.search(rf"\b{alias.name}\b", text) for alias in it.names)


def test_the_chinese_readme_has_the_same_blocks() -> None:
    assert [bare(it) for it in indented(CHINESE)] == [bare(it) for it in indented(README)]
    ours, theirs = ([(kind, bare(text)) for kind, text in blocks(it)] for it in (README, CHINESE))
    assert theirs == ours


def bare(block: str) -> list[str]:
    """A block without its comments, which are translated."""
    return [kept for line in block.splitlines() if (kept := re.sub(r"(^|\s+)# .*", "", line).rstrip())]


if __name__ == "__main__":
    print(pip(sys.argv[1:]))
