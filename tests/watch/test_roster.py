"""ranks.jsonl, whatever somebody put there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from train_ledger.facts import Event
from train_ledger.run_dir import RunDir
from train_ledger.watch.roster import Roster

START = Event(5.0, "run_start", 1, host="n0", details={"pid": 7, "gpu": 1})
LINE = {"t": 5.0, "rank": 1, "host": "n0", "gpu": 1, "pid": 7, "attempt": 0}


def lines_after(run: RunDir) -> list[str]:
    roster = Roster(run)
    roster.take([START])
    roster.write()
    return run.ranks_jsonl.read_text().splitlines()


def test_what_somebody_else_knows_of_a_rank_is_kept(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.ranks_jsonl.write_text('{"rank": 1, "rack": "r7", "host": "old"}\n')
    assert [json.loads(line) for line in lines_after(run)] == [{**LINE, "rack": "r7"}]


@pytest.mark.parametrize(
    "line",
    [
        '{"rank":1e400}',
        '{"rank":NaN}',
        "[" * 100_000,
        '{"rank":0,"x":' + "[" * 100_000,
        '{"rank":1' + "0" * 5000 + "}",
        "7",
        "{half",
        "a\x85b",
    ],
)
def test_a_line_that_is_none_is_neither_lost_nor_does_it_stop_the_keeper(tmp_path: Path, line: str) -> None:
    run = RunDir(tmp_path)
    run.ranks_jsonl.write_text(line + "\n")
    kept, own = lines_after(run) if "\x85" not in line else run_split(run)
    assert kept == line
    assert json.loads(own) == LINE


def run_split(run: RunDir) -> list[str]:
    """Lines as the file has them: other ends than a newline are none."""
    lines_after(run)
    return run.ranks_jsonl.read_text().split("\n")[:-1]


def test_what_is_no_file_is_neither_waited_for_nor_replaced(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    os.mkfifo(run.ranks_jsonl)
    roster = Roster(run)
    roster.take([START])
    with pytest.raises(OSError, match="is a FIFO"):
        roster.write()
    roster.write()  # told once, until there is news
    assert run.ranks_jsonl.is_fifo()
