"""One rank, asked for from a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from train_ledger.chaos import fleet
from train_ledger.cli import app


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> fleet.Fleet:
    return fleet.write(tmp_path_factory.mktemp("hung") / "r42", fault="hang", culprit=5)


def _rank(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["rank", *map(str, arguments)], catch_exceptions=False)


def test_the_first_line_says_what_it_does(hung: fleet.Fleet) -> None:
    told = _rank(hung.run_dir.path, "5", "--at", str(hung.t))
    assert told.stdout.startswith("rank 5 on node000, GPU 5: stands: step 50 completed 2 min")
    assert "\n  waits for it  ranks 0-4,6-15 (15), by their own lines" in told.stdout
    assert told.exit_code == 1


def test_json_holds_the_same(hung: fleet.Fleet) -> None:
    told = json.loads(_rank(hung.run_dir.path, "6", "--at", str(hung.t), "--json").stdout)
    assert (told["schema"], told["rank"], told["doing"], told["phase"]) == (1, 6, "stands", "backward")
    assert told["where"]["host"] == "node000"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("99", "world_size is 16 (0 to 15), known are ranks 0-15"),
        ("x", "valid integer"),
        ("99999999", "1048575"),
    ],
)
def test_what_is_no_rank_of_it_is_one_line(hung: fleet.Fleet, number: str, said: str) -> None:
    told = _rank(hung.run_dir.path, number, "--at", str(hung.t))
    assert told.exit_code == 2
    assert said in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_no_run_directory_is_one_line(tmp_path: Path) -> None:
    told = _rank(tmp_path / "none", "5")
    assert (told.exit_code, len(told.stderr.splitlines())) == (2, 1)


def test_an_empty_folder_has_no_rank(tmp_path: Path) -> None:
    told = _rank(tmp_path, "5")
    assert told.exit_code == 2
    assert "no rank of it has written anything" in told.stderr


def test_a_log_that_names_its_rank_tells_of_it(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    lines = [f"2026-11-30 03:{minute:02d}:00 INFO step: {minute} loss: 2.5\n" for minute in range(1, 13)]
    (tmp_path / "logs" / "rank_3.log").write_text("".join(lines))
    told = _rank(tmp_path, "3", "--at", "2026-11-30T03:12:30")
    assert "Traceback" not in told.stdout + told.stderr
    assert "03:12:00 INFO step: 12" in told.stdout or "signals" in told.stdout
