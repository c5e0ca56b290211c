"""`train-ledger report`, for the meeting on Monday."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rights import needs_locks, train_ledger_without_rights
from train_ledger.cli import app
from train_ledger.dash import Alert, Transition
from train_ledger.ledger import Journal

T = 1_800_057_600.0
DAY_S = 86_400.0


def _report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)], catch_exceptions=False)


def _entry(kind: Any, name: str, t: float, level: Any = "record", **labels: str) -> dict[str, Any]:
    alert = Alert(name, level, {"run": "r42", **labels}, t, f"r42: {name} <b>here</b>", 1.0)
    return {"t": t, "kind": f"alert_{kind}", "transition": Transition(kind, alert, t).to_json()}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A day of steps, of which an hour was lost, with clocks that were low twice on one host, and a page."""
    about = {"run": "r42", "world_size": 8, "device": "H100", "gpu_price_per_hour": 2.0}
    (tmp_path / "run.json").write_text(json.dumps(about))
    (tmp_path / "signals").mkdir()
    steps = [T + 600.0 * number for number in range(1, 145) if not 60 <= number < 66]
    lines = [{"t": t, "step": number, "rank": 0, "loss": 2.0} for number, t in enumerate(steps, 1)]
    (tmp_path / "signals" / "rank_00000.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    journal = Journal(tmp_path / "ledger" / "journal.jsonl")
    for hour in (3, 9):
        journal.append(_entry("fired", "GpuClockLow", T + hour * 3600, host="node17", gpu="3", rank="3"))
        journal.append(
            _entry("resolved", "GpuClockLow", T + hour * 3600 + 900, host="node17", gpu="3", rank="3")
        )
    journal.append(_entry("fired", "TrainingStepStalled", T + 36_300, "page"))
    journal.append(_entry("resolved", "TrainingStepStalled", T + 40_000, "page"))
    journal.close()
    return tmp_path


WHEN = ("--at", str(T + DAY_S))


def test_what_to_see_to_by_day_and_what_it_cost(run: Path) -> None:
    told = _report(run, "--since", "1d", *WHEN)
    assert told.exit_code == 0
    assert told.stdout.startswith("r42, 2027-01-16 to 2027-01-17: 2 alerts on record in 1 matter, 1 page; ")
    assert (
        "- GpuClockLow on node17 (rank 3, GPU 3): 2 times, 30 min 0 s in all; first 01-16 03:00"
        in told.stdout
    )
    assert "effective" in told.stdout
    assert " USD" in told.stdout
    assert "train-ledger runbook GpuClockLow" in told.stdout


def test_for_a_script(run: Path) -> None:
    told = json.loads(_report(run, "--since", "1d", *WHEN, "--json").stdout)
    assert told["schema"] == 1
    (own,) = told["runs"]
    assert [(it["name"], it["times"]) for it in own["matters"] if it["level"] == "record"] == [
        ("GpuClockLow", 2)
    ]
    assert sum(own["accounts"]["seconds"].values()) == pytest.approx(DAY_S, abs=601)


@pytest.mark.parametrize(("name", "start"), [("week.md", "# r42, "), ("week.html", "<!doctype html>")])
def test_into_a_file_in_which_no_word_of_a_log_does_anything(run: Path, name: str, start: str) -> None:
    told = _report(run, "--since", "1d", *WHEN, "--output", run / name)
    assert (told.exit_code, told.stdout) == (0, "")
    text = (run / name).read_text()
    assert text.startswith(start)
    assert "<b>here" not in text


def test_several_runs_each_by_its_name(run: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("r43")
    told = _report(run, other, "--since", "1d", *WHEN)
    assert told.stdout.startswith("2 runs, ")
    assert "to see to by day – r42" in told.stdout
    assert "no keeper kept a journal of this run" in told.stdout


@pytest.mark.parametrize("since", ["7 days", "0d", "9d9", "2099-01-01T00:00:00Z", "-5d", ""])
def test_a_time_that_is_none(run: Path, since: str) -> None:
    told = _report(run, f"--since={since}", *WHEN)
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr.count("\n") == 1


def test_a_length_longer_than_all_time_reaches_as_far_as_there_is(run: Path) -> None:
    assert _report(run, "--since", "999999d", *WHEN).stdout.startswith("r42, 1970-01-01 to ")


def test_what_is_wanted_is_said_where_it_is_none(run: Path) -> None:
    assert (
        "--since 7w: is no length of time and no time; wanted are 7d" in _report(run, "--since", "7w").stderr
    )


def test_a_run_that_is_named_twice_is_not_counted_twice(run: Path, tmp_path_factory: Any) -> None:
    link = tmp_path_factory.mktemp("links") / "r43"
    link.symlink_to(run)
    told = _report(run, link, *WHEN)
    assert (told.exit_code, told.stdout) == (2, "")
    assert f"{link}: is named twice, as {run}, too; name each run once" in told.stderr


def test_one_of_several_that_cannot_be_read_is_named_and_the_others_are_reported_on(
    run: Path, tmp_path: Path
) -> None:
    broken, unset = tmp_path / "broken", tmp_path / "unset"
    (broken / "ledger" / "journal.jsonl").mkdir(parents=True)
    unset.mkdir()
    (unset / "train-ledger.toml").write_text("[cost]\ncurrency = 7\n")
    told = _report(broken, run, unset, "--since", "1d", *WHEN)
    assert told.exit_code == 2
    assert told.stdout.startswith("1 of 3 runs, 2 could not be read, 2027-01-16 to 2027-01-17: 2 alerts")
    assert "time and money – r42" in told.stdout
    assert f"- {broken}: {broken}/ledger/journal.jsonl: cannot be read" in told.stdout
    assert f"- {unset}: {unset}/train-ledger.toml: " in told.stdout
    answer = json.loads(_report(broken, run, "--since", "1d", *WHEN, "--json").stdout)
    assert [it["run"] for it in answer["runs"]] == ["r42"]
    assert [it["file"] for it in answer["unreadable"]] == [str(broken)]


def test_a_slip_in_the_name_of_one_of_several_costs_the_others_nothing(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = _report(run, tmp_path / "r24", tmp_path / "file", "--since", "1d", *WHEN)
    assert told.exit_code == 2
    assert told.stdout.startswith("1 of 3 runs, 2 could not be read, 2027-01-16 to 2027-01-17: 2 alerts")
    assert f"- {tmp_path}/r24: there is no such run directory; check the path" in told.stdout
    assert f"- {tmp_path}/file: is a file, but a run directory is wanted" in told.stdout


@needs_locks
def test_nor_does_one_that_may_not_be_read(run: Path, tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)
    told = train_ledger_without_rights("report", run, shut, *WHEN)
    shut.chmod(0o700)
    assert (told.returncode, told.stderr) == (2, "")
    assert told.stdout.startswith("1 of 2 runs, 1 could not be read")
    assert f"- {shut}: {shut}/train-ledger.toml: Permission denied" in told.stdout


def test_where_nothing_is_known_of_a_run_nothing_is_called_fine(run: Path, tmp_path_factory: Any) -> None:
    nothing = tmp_path_factory.mktemp("nothing")
    assert _report(nothing, *WHEN).exit_code == 3
    assert _report(nothing, run, *WHEN).exit_code == 0


def test_where_none_can_be_read_nothing_is_said_of_them(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "ledger" / "journal.jsonl").mkdir(parents=True)
    told = _report(tmp_path / "a", tmp_path / "b", *WHEN)
    assert (told.exit_code, "0 of 2 runs, 2 could not be read" in told.stdout) == (2, True)


def test_one_alone_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "ledger" / "journal.jsonl").mkdir(parents=True)
    told = _report(tmp_path, *WHEN)
    assert (told.exit_code, told.stdout, told.stderr.count("\n")) == (2, "", 1)
