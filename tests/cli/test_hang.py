"""From dumps on the disk to the line that is read first."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from train_ledger.cli import app


def _dump(folder: Path, rank: int, last: int, *, pending: bool) -> None:
    """A Flight Recorder dump of one rank of four, as NCCL writes it: `last` all_reduces were issued."""
    entries: list[dict[str, Any]] = [
        {
            "record_id": seq,
            "pg_id": 0,
            "process_group": ("0", "default_pg"),
            "collective_seq_id": seq,
            "p2p_seq_id": 0,
            "op_id": seq,
            "profiling_name": "nccl:all_reduce",
            "time_created_ns": 1_800_000_000_000_000_000 + seq * 1_000_000_000,
            "input_sizes": [[4]],
            "input_dtypes": ["Float"],
            "output_sizes": [[4]],
            "output_dtypes": ["Float"],
            "state": "started" if pending and seq == last else "completed",
            "time_discovered_started_ns": 1,
            "time_discovered_completed_ns": None if pending and seq == last else 2,
            "retired": not (pending and seq == last),
            "timeout_ms": 600000,
            "is_p2p": False,
            "frames": [{"name": "step", "filename": "train.py", "line": 90}],
        }
        for seq in range(1, last + 1)
    ]
    group = {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}
    content = {"version": "2.10", "pg_config": {"0": group}, "pg_status": {}, "entries": entries}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"rank_{rank}").write_bytes(pickle.dumps(content, protocol=2))


def _stack(folder: Path, rank: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"rank_{rank}.txt").write_text(
        f"Process {4000 + rank}: python train.py\nPython v3.12.3\n\n"
        f'Thread {4000 + rank} (idle): "MainThread"\n'
        "    wait_for_batch (train.py:88)\n    main (train.py:120)\n"
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four ranks, of which rank 3 stopped before the fifth all_reduce."""
    for rank in range(3):
        _dump(tmp_path / "comm_traces", rank, 5, pending=True)
    _dump(tmp_path / "comm_traces", 3, 4, pending=False)
    _stack(tmp_path / "stacks", 3)
    (tmp_path / "run.json").write_text('{"run": "r42", "world_size": 4}')
    return tmp_path


def _hang(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["hang", *map(str, arguments)], catch_exceptions=False)


def test_the_culprit_is_the_first_line(run: Path) -> None:
    told = _hang(run / "comm_traces", "--stacks", run / "stacks")
    assert told.exit_code == 1
    lines = told.stdout.splitlines()
    assert lines[0] == "culprit: rank 3"
    assert "  who waits   ranks 0-2 wait for rank 3" in lines
    assert any(line.startswith("  stands in   train.py:88 wait_for_batch") for line in lines)


def test_the_same_for_a_script(run: Path) -> None:
    told = _hang(run / "comm_traces", "--json")
    answer = json.loads(told.stdout)
    assert (told.exit_code, answer["verdict"], answer["culprits"]) == (1, "hang", [3])
    assert (answer["kind"], answer["seq"], answer["op"]) == ("missing_ranks", 5, "all_reduce")
    assert answer["victims_of"] == {"3": [0, 1, 2]}


@pytest.mark.parametrize("how", [["--run", "{run}"], ["{run}"]])
def test_a_run_directory_is_enough(run: Path, how: list[str]) -> None:
    told = _hang(*(it.format(run=run) for it in how))
    assert told.stdout.startswith("culprit: rank 3\n")


def test_dumps_and_run_together(run: Path) -> None:
    told = _hang(run / "comm_traces", "--run", run, "--json")
    answer = json.loads(told.stdout)
    assert answer["culprits"] == [3]
    assert answer["findings"][0]["frame"] == "train.py:88 wait_for_batch", "the run's own stacks are read"


def test_no_hang_is_no_trouble(tmp_path: Path) -> None:
    for rank in range(4):
        _dump(tmp_path, rank, 5, pending=False)
    told = _hang(tmp_path)
    assert told.exit_code == 0
    assert told.stdout.startswith("no hang: ")


def test_garbage_alone_cannot_tell_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(b"\x80\x02garbage")
    told = _hang(tmp_path)
    assert told.exit_code == 3
    assert told.stdout.startswith("cannot tell, because ")
    assert str(tmp_path / "rank_0") in told.stdout


def test_the_report_is_written_beside_the_answer(run: Path, tmp_path: Path) -> None:
    told = _hang(run / "comm_traces", "--html", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert told.stdout.startswith("culprit: rank 3\n")
    assert '<h1 class="trouble">culprit: rank 3</h1>' in page


def test_logs_that_are_not_read_are_said_to_be_unread(run: Path) -> None:
    answer = json.loads(_hang(run / "comm_traces", "--logs", run, "--json").stdout)
    assert any(line.startswith("logs: ") for line in answer["not_observed"])


def test_a_hostile_pickle_is_named_and_does_nothing(run: Path, tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "PICKLE_WAS_RUN",))

    (run / "comm_traces" / "rank_2").write_bytes(pickle.dumps(Hostile(), protocol=2))
    told = _hang(run / "comm_traces")
    assert "comm_traces/rank_2" in told.stdout.split("\nnot read\n")[1]
    assert not (tmp_path / "PICKLE_WAS_RUN").exists()


def test_the_table_stands_right_below_the_verdict(run: Path) -> None:
    lines = _hang(run / "comm_traces").stdout.splitlines()
    assert lines[:10] == [
        "culprit: rank 3",
        "",
        "  group 0 (default_pg), ranks 0-3",
        "  seq   ranks 0-2                         rank 3 (culprit)",
        "  " + "-" * 71,
        "    2   all_reduce [4] Float, completed   all_reduce [4] Float, completed",
        "    3   all_reduce [4] Float, completed   all_reduce [4] Float, completed",
        "    4   all_reduce [4] Float, completed   all_reduce [4] Float, completed",
        "  > 5   all_reduce [4] Float, started     ! has not come",
        "",
    ]


def test_the_entries_of_a_rank(run: Path) -> None:
    told = _hang(run / "comm_traces", "--entries", "--ranks", "0,3", "--last", "2")
    assert told.exit_code == 0
    lines = told.stdout.splitlines()
    assert lines[0].startswith("rank 0: 2 of 5 nccl entries; --last 0 lists all (")
    assert (
        "  5        0 (default_pg)   5     all_reduce [4] Float   started     01-15 08:00:05.000" in lines[4]
    )
    assert lines.count("stack #1") == 1
    assert lines[lines.index("stack #1") + 1] == "    train.py:90 step"


def test_the_entries_for_a_script(run: Path) -> None:
    told = json.loads(_hang(run, "--entries", "--ranks", "3", "--groups", "default_pg", "--json").stdout)
    assert told["schema"] == 1
    assert list(told["ranks"]) == ["3"]
    entries = told["ranks"]["3"]["entries"]
    assert [entry["seq"] for entry in entries] == [1, 2, 3, 4]
    assert entries[0]["op"] == "all_reduce"
    assert told["stacks"] == {"1": ["train.py:90 step"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--entries", "--ranks", "9"], "no dump of rank 9; there are dumps of ranks 0-3"),
        (["--entries", "--ranks", "1-0"], "'1-0' is neither a rank nor a range of ranks like 7-9"),
        (["--entries", "--ranks", "0-99999999999"], "neither a rank nor a range"),
        (["--entries", "--groups", "tp"], "no entry of group tp; there are 0, default_pg"),
        (["--entries", "--html", "x.html"], "say one of them"),
        (["--ranks", "0"], "say --entries, too"),
    ],
)
def test_what_cannot_be_listed_is_said_in_one_line(run: Path, options: list[str], said: str) -> None:
    told = _hang(run / "comm_traces", *options)
    assert told.exit_code == 2
    assert said in told.stderr
