"""`train-ledger cost`, as it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from train_ledger.cli import app
from train_ledger.ledger.costs import FIGURES

DOCS = Path(__file__).parents[2] / "docs" / "cost.md"


def _cost(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["cost", *map(str, arguments)], catch_exceptions=False)


def test_a_job_as_it_is_assumed() -> None:
    told = _cost("--assume", "world_size=1024,price=2.5")
    assert told.exit_code == 0
    assert told.stdout.startswith("1,024 GPUs cost 2,560 USD an hour\n")
    assert "0.71 days of a job of 30 days" in told.stdout
    assert "16 min 26 s" in told.stdout
    assert "300,373 USD in 30 days" in told.stdout
    assert "world_size       1,024 GPUs (given)" in told.stdout
    assert "mtbi             3 h 0 min (assumed)" in told.stdout


def test_for_a_script_each_figure_says_where_it_comes_from() -> None:
    told = json.loads(_cost("--assume", "price=1", "--json").stdout)
    assert told["schema"] == 1
    assert told["figures"]["price"] == {"value": 1.0, "origin": "given", "by": ""}
    assert told["figures"]["mtbi"]["origin"] == "assumed"
    assert told["run"] is None


def test_a_price_that_nobody_named_is_told_to_be_assumed() -> None:
    assert "at a price that is assumed\n" in _cost("--assume", "mtbi=2h").stdout


def test_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "cost.html"
    assert _cost("--assume", "price=1", "--html", page).exit_code == 0
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("arguments", [[], ["--assume", "gpus=8"], ["--assume", "price=dear"], ["nowhere"]])
def test_what_cannot_be_told_is_one_line(arguments: list[str]) -> None:
    told = _cost(*arguments)
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr.count("\n") == 1


def test_every_figure_is_documented() -> None:
    page = DOCS.read_text()
    assert [name for name in FIGURES if f"| `{name}` |" not in page] == []


def test_of_a_run_of_which_nothing_is_known_only_a_job_is_told(tmp_path: Path) -> None:
    told = _cost(tmp_path)
    assert told.exit_code == 3
    assert told.stdout.startswith(
        f"{tmp_path.name}: nothing is known of it by then; a job of 1,024 GPUs would cost"
    )
    assert "this run would have saved" not in told.stdout
    assert "what to mend first, by what the job would save" in told.stdout


def test_what_to_mend_first_is_prose_that_a_narrow_terminal_can_wrap() -> None:
    told = _cost("--assume", "price=2.5").stdout
    first = (
        "  - 117 h 20 min, 120,149.3 GPU-hours, 300,373 USD: alert on the step count, and a runbook for hangs"
    )
    assert f"{first} (effort: 2–3 person-days) – 240 failures\n" in told
    assert (
        "  - where dumps go, and a drill that collects them (effort: half a day) – saves nothing by itself"
        in told
    )
