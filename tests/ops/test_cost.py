"""The costs of a run, by all that lies in its run directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from train_ledger import config
from train_ledger.cli import app
from train_ledger.ledger.costs import Costs, given
from train_ledger.ops.cost import cost
from train_ledger.run_dir import RunDir

from .postmortem.seed_run import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return make_run(tmp_path_factory.mktemp("seed"))


@pytest.fixture(scope="module")
def found(run: RunDir) -> Costs:
    return cost(run, config.load(run))


def test_the_runs_own_figures_go_before_the_articles(found: Costs) -> None:
    known = {name: (it.origin, round(it.value)) for name, it in found.figures.items()}
    assert known["world_size"] == ("measured", 1024)
    assert known["price"] == ("configured", 2)
    assert known["checkpoint"] == ("measured", 45)
    assert known["interval"] == ("measured", 1485)
    assert known["detect"] == ("configured", 110)
    assert known["decide"] == ("assumed", 540)
    assert known["mtbi"][0] == "measured"


def test_its_hours_are_priced(found: Costs) -> None:
    assert found.run is not None
    assert found.run.gpu_hours is not None
    assert found.run.cost == pytest.approx(sum(found.run.gpu_hours.values()) * 2.5)


def test_what_is_given_goes_before_what_was_measured(run: RunDir) -> None:
    found = cost(run, config.load(run), given=given("world_size=8,mtbi=1h"))
    assert (found.figures["world_size"].value, found.figures["mtbi"].origin) == (8, "given")


def test_in_the_terminal(run: RunDir) -> None:
    told = CliRunner().invoke(app, ["cost", str(run.path)], catch_exceptions=False)
    assert told.exit_code == 0
    assert told.stdout.startswith("run42: 1,024 GPUs cost 2,560 USD an hour\n")
    assert "by what this run would have saved" in told.stdout


def test_a_run_of_which_nothing_is_known_has_no_bill(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["cost", str(tmp_path)], catch_exceptions=False)
    assert told.exit_code == 3
    assert "nothing is known of it by then" in told.stdout


def test_journal_and_notes_know_the_decision_and_the_cause(found: Costs) -> None:
    assert found.hang.in_run["decide"] == 445
    saved = {it.measure.split(" ")[0]: it.saved_s for it in found.priorities}
    assert saved["exclude"] == 445
    assert saved["alert"] == 0
