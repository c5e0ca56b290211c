"""Whether a run is slow, asked from a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from train_ledger.chaos import fleet
from train_ledger.chaos.fleet import Fleet
from train_ledger.cli import app


def _slow(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["slow", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    folder = tmp_path_factory.mktemp("slow") / "r42"
    return fleet.write(folder, fault="slow_rank", culprit=5, hosts=2, ranks_per_host=4, steps=200)


def test_the_culprit_is_the_first_line_and_the_remedy_is_told(made: Fleet) -> None:
    told = _slow(made.run_dir.path, "--at", made.t)
    assert told.exit_code == 1
    assert told.stdout.startswith("culprit: rank 5 on node001\n")
    assert "slow.straggler.software  confirmed" in told.stdout
    assert "to mend" in told.stdout


def test_the_answer_of_diagnose_holds_the_slow_answer(made: Fleet) -> None:
    answer = json.loads(_slow(made.run_dir.path, "--at", made.t, "--json").stdout)
    assert (answer["schema"], answer["cause"], answer["ranks"]) == (1, "slow.straggler.software", [5])
    assert answer["details"]["verdict"] == "slow"
    assert answer["details"]["victims"] == [0, 1, 2, 3, 4, 6, 7]
    assert {it["verdict"] for it in answer["details"]["suspects"]} <= {
        "confirmed",
        "ruled_out",
        "not_observed",
    }


def test_it_can_be_written_as_a_page(made: Fleet, tmp_path: Path) -> None:
    _slow(made.run_dir.path, "--at", made.t, "--html", tmp_path / "slow.html")
    assert "slow.straggler.software" in (tmp_path / "slow.html").read_text()


def test_steps_can_be_named_to_compare_with(made: Fleet) -> None:
    answer = json.loads(_slow(made.run_dir.path, "--at", made.t, "--baseline", "10-90", "--json").stdout)
    assert answer["details"]["compared_with"] == "steps 10-90"
    assert answer["details"]["before_s"] == pytest.approx(1.0, rel=0.05)


def test_a_step_to_cut_at_can_be_named(made: Fleet) -> None:
    answer = json.loads(_slow(made.run_dir.path, "--at", made.t, "--since", 101, "--json").stdout)
    assert answer["since_step"] == 101


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--since", "5", "--baseline", "1-9"), "give one of them"),
        (("--baseline", "90-10"), "the first step is after the last"),
        (("--baseline", "/nowhere/at/all"), "/nowhere/at/all"),
        (("--since", "yesterday"), "is no time"),
        (("--since", "999999"), "from there on are no steps, and it takes 10 to compare; the newest step is"),
        (("--since", "1"), "before it are no steps"),
        (("--baseline", "1-3"), "among these are 3 steps"),
        (("--baseline", "5000-6000"), "among these are no steps"),
        (("--baseline", "1-90000"), "after these are no steps"),
    ],
)
def test_what_cannot_be_compared_with_is_one_line(made: Fleet, arguments: tuple[str, ...], why: str) -> None:
    told = _slow(made.run_dir.path, *arguments)
    assert told.exit_code == 2
    assert why in told.stderr
    assert len(told.stderr.strip().splitlines()) == 1


def test_a_run_without_steps_cannot_be_told(tmp_path: Path) -> None:
    (tmp_path / "signals").mkdir()
    told = _slow(tmp_path)
    assert told.exit_code == 3
    assert told.stdout.startswith("cannot tell, because")
