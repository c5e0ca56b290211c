"""What a program caught, printed and went on from accuses nobody, though its traceback tells no time."""

from __future__ import annotations

import os
import time

import pytest

from ops.cascades import START_T, timed_out, traceback
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.ops.troubles.trouble import Trouble
from train_ledger.ops.troubles.undated import with_latest_times
from train_ledger.run_dir import RunDir

CAUGHT = traceback(2, "FileNotFoundError: [Errno 2] No such file or directory: '/data/optional.json'")
LAST_STEP_T = START_T + 400
END_T = LAST_STEP_T + 601


def said(t, text):
    """As Python's logging writes it."""
    return f"[{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(t))},{int(t % 1 * 1000):03d}] {text}\n"


def put(run, logs):
    for rank, text in logs.items():
        path = run.logs / "attempt_0" / str(rank) / "stderr.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (END_T + 1, END_T + 1))


def hung(run, behind, *, of_rank_2):
    """Rank 0 tells of 200 steps; then the watchdogs of all but `behind` give up the same collective."""
    logs = {rank: "" if rank in behind else timed_out(rank, END_T, seq=242) for rank in range(4)}
    logs[0] = "".join(said(START_T + 2 * n, f"step {n} loss 2.5") for n in range(1, 201)) + logs[0]
    put(run, {**logs, 2: of_rank_2 + logs[2]})
    return diagnose(run, Config(), at=END_T + 60)


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path / "run")


def test_the_time_of_the_line_behind_says_that_it_was_long_before(run):
    went_on = said(LAST_STEP_T - 200, "WARNING could not read optional.json, going on without it")
    told = hung(run, {3}, of_rank_2=CAUGHT + went_on)
    assert (told.cause, told.ranks) == ("hang.rank_missing", (3,))


def test_who_came_to_what_all_others_wait_for_is_not_what_they_wait_for(run):
    told = hung(run, {3}, of_rank_2=CAUGHT)
    assert (told.cause, told.ranks) == ("hang.rank_missing", (3,))


def test_who_raised_and_did_not_come_is_the_one(run):
    told = hung(run, {2}, of_rank_2=CAUGHT)
    assert (told.cause, told.ranks) == ("hang.rank_died", (2,))


@pytest.mark.parametrize(
    ("behind", "t"),
    [
        ([said(START_T + 50, "going on")], START_T + 50),
        (["no time here\n", said(START_T + 60, "going on")], START_T + 60),
        ([said(START_T - 86400, "a date of long before")], END_T),
        (["resumed what was saved at 2026-09-21 14:14:00\n"], END_T),
        ([], END_T),
    ],
    ids=["the next line", "a later line", "before the earliest", "a time within a sentence", "nothing"],
)
def test_the_latest_time_is_that_of_the_next_line_that_tells_one(run, behind, t):
    put(run, {2: CAUGHT + "".join(behind)})
    raised = Trouble(
        "exception",
        "FileNotFoundError",
        "cause",
        END_T,
        START_T,
        2,
        source=f"logs/attempt_0/2/stderr.log:{CAUGHT.count(chr(10))}",
    )
    (told,) = with_latest_times([raised], run)
    assert (told.t, told.earliest_t) == (pytest.approx(t), START_T)
