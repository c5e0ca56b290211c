"""What could be told of a run, asked from a shell."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from train_ledger.answer import CAUSES
from train_ledger.chaos import fleet
from train_ledger.cli import app


def _coverage(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["coverage", *map(str, arguments)], catch_exceptions=False)


def test_the_first_lines_say_what_could_not_be_told(tmp_path: Path) -> None:
    made = fleet.write(tmp_path / "r42", hosts=1, ranks_per_host=2)
    told = _coverage(made.run_dir.path, "--at", str(made.t + 1))
    assert told.exit_code == 1
    first, second, *_ = told.stdout.splitlines()
    assert "causes could not be told now" in first
    assert second.startswith("  - ")
    assert f"train-ledger export {made.run_dir.path} --record-hardware" in told.stdout


def test_json_holds_every_cause_and_signal(tmp_path: Path) -> None:
    made = fleet.write(tmp_path / "r42", hosts=1, ranks_per_host=2)
    answer = json.loads(_coverage(made.run_dir.path, "--at", str(made.t + 1), "--json").stdout)
    assert answer["schema"] == 1
    assert {it["cause"] for it in answer["causes"]} == CAUSES.keys()
    steps = next(it for it in answer["signals"] if it["name"] == "steps")
    assert (steps["arrival"]["have"], steps["arrival"]["of"]) == (2, 2)
    assert "slow.data" in next(it for it in answer["signals"] if it["name"] == "data_wait_s")["causes"]


def test_an_empty_folder_tells_nothing(tmp_path: Path) -> None:
    told = _coverage(tmp_path)
    assert told.exit_code == 3
    assert told.stdout.startswith("nothing arrives: no rank has written a line")


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    told = _coverage(tmp_path / "none")
    assert (told.exit_code, len(told.stderr.splitlines())) == (2, 1)


def test_a_log_alone_tells_of_steps_and_not_of_who_drags(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    figures = "elapsed time per iteration (ms): 1000.0 | lm loss: 2.0E+00 |"
    lines = [
        f"[2026-11-30 03:{minute:02d}:00] iteration {minute:8d}/ 100 | {figures}" for minute in range(1, 20)
    ]
    (tmp_path / "logs" / "train.log").write_text("\n".join(lines) + "\n")
    answer = json.loads(_coverage(tmp_path, "--at", "2026-11-30T03:19:30+00:00", "--json").stdout)
    told = {it["cause"]: it["told"] for it in answer["causes"]}
    assert (told["numeric.nan"], told["slow.straggler.software"], told["none"]) == ("yes", "no", "yes")
