"""A job that comes back, one that does not, and one that does with a store of its own."""

from __future__ import annotations

import os

import pytest

from train_ledger.chaos.preflight import launch
from train_ledger.ops.preflight import OWN_STORE_VARIABLE, Launched


@pytest.fixture
def tries(monkeypatch):
    """What the job is started with, try after try; `outcomes` are how the tries end."""
    monkeypatch.delenv(OWN_STORE_VARIABLE, raising=False)
    seen, outcomes = [], []

    def once(folder, ranks, stages, load_s, more):
        seen.append(more)
        return outcomes[len(seen) - 1]

    monkeypatch.setattr(launch, "_once", once)
    return seen, outcomes


REFUSED = Launched(False, said="Connection refused")
STAGES = ["restore", "kill"]


def test_a_job_that_comes_back_is_tried_once(tries, tmp_path):
    seen, outcomes = tries
    outcomes += [Launched(True)]
    assert launch.run_job(tmp_path, 4, STAGES, 1.0) == Launched(True)
    assert seen == [{}]


def test_one_that_comes_back_with_a_store_of_its_own_alone_says_so_and_why(tries, tmp_path):
    seen, outcomes = tries
    outcomes += [REFUSED, Launched(True)]
    found = launch.run_job(tmp_path, 4, STAGES, 1.0)
    assert found == Launched(True, OWN_STORE_VARIABLE, "Connection refused")
    assert seen == [{}, {OWN_STORE_VARIABLE: "1"}]


def test_one_that_never_comes_back_keeps_its_first_reason(tries, tmp_path):
    _, outcomes = tries
    outcomes += [REFUSED, Launched(False, said="something later")]
    assert launch.run_job(tmp_path, 4, STAGES, 1.0) == REFUSED


def test_where_the_variable_is_set_or_nobody_is_killed_there_is_one_try(tries, tmp_path, monkeypatch):
    seen, outcomes = tries
    outcomes += [REFUSED, REFUSED]
    launch.run_job(tmp_path, 4, ["bandwidth"], 1.0)
    monkeypatch.setenv(OWN_STORE_VARIABLE, "1")
    launch.run_job(tmp_path, 4, STAGES, 1.0)
    assert seen == [{}, {}]


def test_the_reason_is_the_last_attempts_error(tmp_path):
    for attempt, line in ((0, "RuntimeError: rank 2 was killed"), (1, "RuntimeError: Connection refused")):
        place = tmp_path / "logs" / "x" / f"attempt_{attempt}" / "0"
        place.mkdir(parents=True)
        (place / "stderr.log").write_text(f"Traceback\n{line}\nand some more\n")
    assert launch.said_last(tmp_path) == "RuntimeError: Connection refused"


def test_without_ranks_the_launchers_last_line_is_the_reason(tmp_path):
    assert launch.said_last(tmp_path) == ""
    (tmp_path / "torchrun.log").write_text("first\nNo module named torch\n\n")
    assert launch.said_last(tmp_path) == "No module named torch"


def test_a_job_that_cannot_start_is_told_and_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "command_of", lambda *_: ["sh", "-c", "echo no such thing; exit 3"])
    found = launch._once(tmp_path / "job", 4, STAGES, 1.0, {})
    assert found == Launched(False, said="no such thing")


def test_a_job_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "command_of", lambda *_: ["sleep", "600"])
    monkeypatch.setattr(launch, "_WITHIN_S", 0.3)
    found = launch._once(tmp_path / "job", 4, STAGES, 0.0, {})
    assert not found.came_back
    assert "not over within" in found.said


def test_what_a_launcher_around_us_has_set_is_not_handed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "7")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "mine")
    monkeypatch.setattr(
        launch, "command_of", lambda *_: ["sh", "-c", 'echo "[$RANK$TORCHELASTIC_RUN_ID$HOME]"; exit 1']
    )
    assert launch._once(tmp_path / "job", 4, STAGES, 1.0, {}).said == f"[{os.environ.get('HOME', '')}]"
