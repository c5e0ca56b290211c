"""Ranks by the environment of real processes: children, launchers and other jobs are none of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from train_ledger.sources.processes.rank_processes import Job, jobs_here, variables_of

WAITS = "print('up', flush=True); input()"
SPAWNS = (
    "import os, subprocess, sys\n"
    "env = dict(os.environ, **dict(it.split('=') for it in sys.argv[1:]))\n"
    "child = subprocess.Popen([sys.executable, '-c', \"print('up', flush=True); input()\"], env=env)\n"
    "child.wait()\n"
)


@contextmanager
def process(*command: str, **variables: str) -> Iterator[int]:
    environ = {name: value for name, value in os.environ.items() if name not in ("RANK", "LOCAL_RANK")}
    with subprocess.Popen(
        command, env={**environ, **variables}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        assert started.stdin is not None
        assert started.stdout.readline() == b"up\n"
        yield started.pid
        started.stdin.close()


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def ranks(run_id: str) -> dict[int, int]:
    """Of the one job of this test; others may run on this machine."""
    found = [it for it in jobs_here() if it.job.run_id == run_id]
    assert len(found) <= 1
    return {rank: it.pid for rank, it in found[0].ranks.items()} if found else {}


def test_every_rank_is_found_and_jobs_are_told_apart() -> None:
    with ExitStack() as stack:
        pids = {
            (job, rank): stack.enter_context(
                process(*python(WAITS), RANK=str(rank), TORCHELASTIC_RUN_ID=job, MASTER_PORT="29500")
            )
            for job in ("apart-a", "apart-b")
            for rank in (0, 1)
        }
        assert ranks("apart-a") == {0: pids["apart-a", 0], 1: pids["apart-a", 1]}
        assert ranks("apart-b") == {0: pids["apart-b", 0], 1: pids["apart-b", 1]}
    assert ranks("apart-a") == {}


def test_a_child_that_inherits_its_rank_is_none() -> None:
    with process(*python(SPAWNS), RANK="3", TORCHELASTIC_RUN_ID="child") as pid:
        assert ranks("child") == {3: pid}


def test_a_shell_around_the_rank_is_not_the_rank() -> None:
    """As with torchrun --no-python and a script; py-spy could not read the shell."""
    code = f'{sys.executable} -c "{WAITS}"; true'
    with process("sh", "-c", code, RANK="3", TORCHELASTIC_RUN_ID="shell") as shell:
        assert list(ranks("shell")) == [3]
        assert ranks("shell")[3] != shell


def test_a_launcher_that_was_given_a_rank_itself_is_no_rank() -> None:
    """As in the pods of a PyTorchJob, where RANK is the number of the node."""
    child = ["RANK=8", "LOCAL_RANK=0", "TORCHELASTIC_RUN_ID=pod"]
    with process(
        *python(SPAWNS, *child), RANK="1", MASTER_PORT="23456", TORCHELASTIC_RUN_ID="agent"
    ) as agent:
        assert ranks("agent") == {}
        assert list(ranks("pod")) == [8]
        assert ranks("pod")[8] != agent


def test_two_processes_that_both_say_to_be_a_rank_are_unclear() -> None:
    same = {"RANK": "0", "TORCHELASTIC_RUN_ID": "twice"}
    with process(*python(WAITS), **same) as first, process(*python(WAITS), **same) as second:
        found = next(it for it in jobs_here() if it.job.run_id == "twice")
        assert (found.ranks, found.unclear) == ({}, {0: tuple(sorted((first, second)))})


@pytest.mark.parametrize("rank", ["", "-1", "x", "1" * 5000, "٣"])
def test_what_is_no_number_is_no_rank(rank: str) -> None:
    with process(*python(WAITS), RANK=rank, TORCHELASTIC_RUN_ID="odd"):
        assert ranks("odd") == {}


def test_what_its_environment_says_of_its_dumps() -> None:
    with process(*python(WAITS), TORCH_FR_DUMP_TEMP_FILE="/dumps/rank_", SECRET_TOKEN="x") as pid:  # noqa: S106
        told = variables_of(pid)
    assert told["TORCH_FR_DUMP_TEMP_FILE"] == "/dumps/rank_"
    assert "SECRET_TOKEN" not in told
    assert variables_of(1 << 22) == {}


def test_a_process_table_that_ends_while_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "12").mkdir()
    (tmp_path / "13").mkdir()
    (tmp_path / "13" / "stat").write_text("13 (a) b) S")
    assert jobs_here(tmp_path, os.geteuid()) == []


def test_a_job_is_known_by_any_of_its_names() -> None:
    job = Job("r42", "node-0:29500", "")
    assert [job.is_called(name) for name in ("r42", "node-0:29500", "29500", "", "node-0")] == [True] * 3 + [
        False
    ] * 2
    assert str(job) == "run id r42, MASTER_PORT of node-0:29500"
