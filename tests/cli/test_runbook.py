"""`train-ledger runbook` prints what to do, with this run's own places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from train_ledger.cli import app
from train_ledger.dash import RULES


def told(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["runbook", *arguments], env={"LANG": "C", "LC_ALL": "C"})


def test_without_an_alert_all_are_listed_pages_first() -> None:
    lines = told().stdout.splitlines()
    assert lines[0] == "page"
    assert {line.split()[0] for line in lines if line.startswith("  ")} == {rule.name for rule in RULES}
    assert lines.index("record") == 1 + sum(rule.level == "page" for rule in RULES)


def test_commands_can_be_pasted(tmp_path: Path) -> None:
    answer = told("gpuxiderror", "--run", str(tmp_path), "--host", "node037").stdout
    assert f"\n   train-ledger diagnose {tmp_path}\n" in answer
    assert "\n   ssh node037 nvidia-smi -q -d ECC,PERFORMANCE,ROW_REMAPPER\n" in answer
    assert "```" not in answer


def test_what_is_not_known_is_said() -> None:
    assert "RUN, HOST, RANK: put in by hand what the message names" in told("TrainingStepStalled").stdout


def test_the_card_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(
        json.dumps({"restart_command": "sbatch \x1b[31mgo", "contacts": "Ada"})
    )
    answer = told("--run", str(tmp_path)).stdout
    assert "contacts        Ada" in answer
    assert "exclusion list  not given: `exclude_file` in run.json" in answer
    assert "\x1b" not in answer


def test_in_chinese() -> None:
    assert "五分钟" in told("TrainingStepStalled", "--language", "zh-cn").stdout


def test_as_json(tmp_path: Path) -> None:
    answer = json.loads(told("GpuLost", "--run", str(tmp_path), "--json").stdout)
    assert (answer["schema"], answer["language"], answer["alerts"][0]["level"]) == (1, "en", "page")
    assert {line["what"] for line in answer["card"]} >= {"dumps", "restart", "contacts"}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["StepStalled"], "did you mean TrainingStepStalled"),
        (["xyz"], "`train-ledger runbook` lists them"),
        (["GpuLost", "--language", "tlh"], "there are en, zh-CN"),
        (["GpuLost", "--host", "-oProxyCommand=x"], "is no name of a host"),
        (["GpuLost", "--run", "/nowhere"], "there is no such run directory"),
    ],
)
def test_wrong_usage_is_told_in_a_line(arguments: list[str], why: str) -> None:
    done = told(*arguments)
    assert done.exit_code == 2
    assert why in done.stderr


def test_a_journal_that_cannot_be_read_keeps_nobody_from_what_is_to_be_done(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("")
    done = told("GpuXidError", "--run", str(tmp_path))
    assert done.exit_code == 0
    assert f"train-ledger diagnose {tmp_path}" in done.stdout
    assert "not observed: hosts and ranks in question: " in done.stdout
    assert json.loads(told("GpuXidError", "--run", str(tmp_path), "--json").stdout)["not_observed"]
