"""What `hang` reads: files, folders, archives, attempts, stacks of many ranks in one file."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hang.recorder import Job
from rights import needs_locks, train_ledger_without_rights
from train_ledger.cli import app

SITE = "/opt/venv/lib/python3.11/site-packages"


def hang(*arguments: str | Path) -> dict[str, Any]:
    ended = CliRunner().invoke(app, ["hang", *map(str, arguments), "--json"], catch_exceptions=False)
    assert ended.exit_code in (0, 1, 3), ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def job(missing: int) -> Job:
    """Four ranks, one of which does not come to the second operation."""
    made = Job(4)
    made.issue(range(4), done=True)
    made.issue([rank for rank in range(4) if rank != missing])
    return made


def tar(folder: Path, path: Path, mode: str) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        archive.add(folder, arcname=folder.name)
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_tar_of_dumps(tmp_path: Path, mode: str) -> None:
    job(2).write(tmp_path / "dumps")
    assert hang(tar(tmp_path / "dumps", tmp_path / "all.tar", mode))["culprits"] == [2]


def test_the_folders_of_several_nodes(tmp_path: Path) -> None:
    job(2).write(tmp_path / "all")
    for rank in range(4):
        node = tmp_path / f"node-{rank // 2}"
        node.mkdir(exist_ok=True)
        (tmp_path / "all" / f"rank_{rank}").rename(node / f"rank_{rank}")
    assert hang(tmp_path / "node-0", tmp_path / "node-1")["culprits"] == [2]
    archives = [tar(tmp_path / f"node-{it}", tmp_path / f"{it}.tar.gz", "w:gz") for it in (0, 1)]
    assert hang(*archives)["culprits"] == [2]
    assert hang(tmp_path / "node-0", archives[1])["culprits"] == [2]


@needs_locks
def test_a_folder_and_a_dump_that_may_not_be_read_cost_the_others_nothing(tmp_path: Path) -> None:
    job(2).write(tmp_path / "dumps")
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)
    (tmp_path / "dumps" / "rank_3").chmod(0)
    told = train_ledger_without_rights("hang", shut, *sorted((tmp_path / "dumps").iterdir()), "--json")
    shut.chmod(0o700)
    answer = json.loads(told.stdout)
    assert {it["file"]: it["why"] for it in answer["unreadable"]} == {
        str(shut): "Permission denied",
        str(tmp_path / "dumps" / "rank_3"): "Permission denied",
    }
    assert 2 in answer["culprits"]


def test_the_folder_above_the_dumps_is_as_good_and_it_is_said(tmp_path: Path) -> None:
    job(2).write(tmp_path / "case" / "dumps")
    (tmp_path / "case" / "expected.json").write_text("{}")
    (tmp_path / "case" / "logs").mkdir()
    (tmp_path / "case" / "logs" / "rank_0.log").write_text("step 1")
    answer = hang(tmp_path / "case")
    assert answer["culprits"] == [2]
    assert "those in its folder dumps were read" in answer["unreadable"][0]["why"]


def test_which_of_two_folders_of_dumps_is_meant_is_not_guessed(tmp_path: Path) -> None:
    for name in ("monday", "tuesday"):
        job(2).write(tmp_path / name)
    answer = hang(tmp_path)
    assert (answer["verdict"], answer["culprits"]) == ("cannot_tell", [])
    assert len(answer["unreadable"]) == 2


def test_of_a_folder_of_attempts_the_latest_is_read_and_the_others_are_listed(tmp_path: Path) -> None:
    traces = tmp_path / "comm_traces"
    job(1).write(traces)
    job(2).write(traces / "attempt_1")
    job(3).write(traces / "attempt_2")
    answer = hang(traces)
    assert answer["culprits"] == [3]
    why = "4 files of an earlier attempt than attempt_2, not read; name the files to have them read"
    assert answer["unreadable"] == [
        {"file": str(traces), "why": why},
        {"file": str(traces / "attempt_1"), "why": why},
    ]
    assert hang(traces / "attempt_1")["culprits"] == [2]
    assert hang(*(traces / f"rank_{rank}" for rank in range(4)))["culprits"] == [1]


def test_the_stacks_of_all_ranks_in_one_file_of_torchs_debug_server(tmp_path: Path) -> None:
    job(2).write(tmp_path / "dumps")
    sections = []
    for rank in range(4):
        place = "/job/data.py" if rank == 2 else f"{SITE}/torch/distributed/distributed_c10d.py"
        function = "next_batch" if rank == 2 else "all_reduce"
        sections.append(
            f"=== Rank {rank}: http://node-0:4000{rank}/handler/dump_traceback? ===\n"
            f'Thread 0x00007f0b7a8fb80f (most recent call first):\n  File "{place}", line 8 in {function}\n'
        )
    (tmp_path / "stacks_20261130_031400.txt").write_text("\n".join(sections))
    answer = hang(tmp_path / "dumps", "--stacks", tmp_path / "stacks_20261130_031400.txt")
    assert answer["findings"][0]["frame"] == "data.py:8 next_batch"
    assert (
        "stack of rank 2: waits for its data loader, at data.py:8 next_batch"
        in answer["findings"][0]["evidence"]
    )


def test_stacks_as_our_own_verb_wrote_them(tmp_path: Path) -> None:
    job(2).write(tmp_path / "dumps")
    (tmp_path / "rank_2.txt").write_text('Thread 1 (idle): "MainThread"\n    next_batch (/job/data.py:8)\n')
    taken = CliRunner().invoke(app, ["stacks", "--from", str(tmp_path / "rank_2.txt"), "--json", "--full"])
    (tmp_path / "node-0.json").write_text(taken.stdout)
    answer = hang(tmp_path / "dumps", "--stacks", tmp_path / "node-0.json")
    assert answer["findings"][0]["frame"] == "data.py:8 next_batch"


def test_stacks_alone_are_no_verdict_and_the_verb_that_shows_them_is_named(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["hang", "--stacks", str(tmp_path)])
    assert told.exit_code == 2
    assert f"train-ledger stacks --from {tmp_path}" in told.stderr
