"""Where a run's time went, asked from a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ledger.accounts.made import AttemptPlan, Plan, played
from train_ledger.cli import app
from train_ledger.facts import Event, Step
from train_ledger.run_dir import RunDir


def _account(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["account", *map(str, arguments)], catch_exceptions=False)


def _line(fact: Step | Event) -> str:
    told = {"t": fact.t, "rank": fact.rank, "attempt": fact.attempt}
    if isinstance(fact, Step):
        return json.dumps({**told, "step": fact.step, **fact.values})
    step = {} if fact.step is None else {"step": fact.step}
    return json.dumps({**told, "event": fact.name, **step, **fact.details, "host": fact.host})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A run that was killed and restarted, with an evaluation and a hang; and when it is asked about."""
    plan = Plan(
        (AttemptPlan(steps=18, evaluate_every=8, gap_s=300), AttemptPlan(end="goes_on", hang_at=12)), 4.0
    )
    run = played(plan)
    folder = tmp_path_factory.mktemp("account") / "r42"
    run_dir = RunDir(folder)
    run_dir.signals.mkdir(parents=True)
    run_dir.run_json.write_text('{"run": "r42", "device": "H100", "gpu_price_per_hour": 2.0}')
    lines: dict[int, list[str]] = {}
    for fact in run.facts:
        if isinstance(fact, Step | Event) and fact.rank is not None:
            lines.setdefault(fact.rank, []).append(_line(fact))
    for rank, told in lines.items():
        run_dir.signals_of(rank).write_text("\n".join(told) + "\n")
    return folder, run.t


def test_the_table_comes_first(made: tuple[Path, float]) -> None:
    told = _account(made[0], "--at", made[1])
    assert told.exit_code == 0
    first, *lines = told.stdout.splitlines()
    assert first.startswith("productive ")
    assert [line.split()[0] for line in lines[1:10]] == [
        "productive",
        "rework",
        "checkpoint",
        "evaluation",
        "start_up",
        "stalled",
        "down",
        "unknown",
        "wall",
    ]


def test_the_strip_shows_the_order(made: tuple[Path, float]) -> None:
    told = _account(made[0], "--at", made[1]).stdout
    assert "D" * 5 in told
    assert "D down" in told


def test_the_recovery_says_which_parts_nobody_told(made: tuple[Path, float]) -> None:
    told = _account(made[0], "--at", made[1]).stdout
    assert "3 steps done once more" in told
    assert "not told: detect, dump, decide, restart" in told


def test_json_sums_to_the_wall_time(made: tuple[Path, float]) -> None:
    answer = json.loads(_account(made[0], "--at", made[1], "--json").stdout)
    assert answer["schema"] == 1
    assert round(sum(answer["seconds"].values()), 6) == answer["wall_s"]
    assert answer["spans"][0]["since_t"] == answer["since_t"]
    assert answer["currency"] == "USD"


def test_since_leaves_out_what_was_before(made: tuple[Path, float]) -> None:
    answer = json.loads(_account(made[0], "--at", made[1], "--since", made[1] - 60, "--json").stdout)
    assert answer["wall_s"] == 60


def test_it_can_be_written_as_one_page(made: tuple[Path, float], tmp_path: Path) -> None:
    page = tmp_path / "account.html"
    assert _account(made[0], "--at", made[1], "--output", page).exit_code == 0
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert '<svg class="strip"' in text
    assert "http://" not in text
    assert "https://" not in text


def test_of_an_empty_run_it_says_that_it_cannot_tell(tmp_path: Path) -> None:
    told = _account(tmp_path)
    assert told.exit_code == 3
    assert told.stdout.startswith("cannot tell")


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["account", str(tmp_path / "none")])
    assert told.exit_code == 2
