"""Recorded runs are judged again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from train_ledger.chaos import fleet
from train_ledger.cli import app
from train_ledger.config import Alerts

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (prometheus)"
)


def backtest(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["backtest", *map(str, arguments)])


def answered(*arguments: str | Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(backtest(*arguments, "--json").stdout)
    return answer


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> fleet.Fleet:
    path = tmp_path_factory.mktemp("runs") / "hung"
    return fleet.write(path, ranks_per_host=2, fault="hang", culprit=3, clock_offsets_s={"node001": 40.0})


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> fleet.Fleet:
    return fleet.write(tmp_path_factory.mktemp("runs") / "healthy", ranks_per_host=2, checkpoint_every=20)


def test_a_hang_is_found_and_how_soon_is_told(hung: fleet.Fleet) -> None:
    assert hung.fault_t is not None
    ended = backtest(hung.run_dir.path, "--json")
    answer = json.loads(ended.stdout)
    assert (ended.exit_code, answer["schema"]) == (0, 1)
    (alert,) = answer["alerts"]
    assert (alert["name"], alert["level"], alert["labels"]) == (
        "TrainingStepStalled",
        "page",
        {"run": "hung"},
    )
    assert alert["notified_t"] == alert["fired_t"]  # no first answers are asked for
    assert 90 <= alert["fired_t"] - hung.fault_t <= 96
    assert set(alert) == {
        *("name", "level", "labels", "fired_t", "resolved_t", "inhibited", "notified_t", "summary")
    }
    (incident,) = answer["incidents"]
    assert (incident["kind"], incident["found_by"]) == ("stall", "TrainingStepStalled")
    assert 90 <= incident["detection_s"] <= 96
    assert (answer["missed"], answer["false_pages"], answer["incidents_from"]) == ([], [], "run")


def test_of_a_healthy_run_there_is_nothing_to_tell(healthy: fleet.Fleet) -> None:
    ended = backtest(healthy.run_dir.path)
    assert ended.exit_code == 0
    assert ended.stdout.startswith("no incident and no page in 0.")


def test_as_known_at_a_moment_before_the_page_there_is_none(hung: fleet.Fleet) -> None:
    assert hung.fault_t is not None
    answer = answered(hung.run_dir.path, "--until", str(hung.fault_t + 60))
    assert (answer["alerts"], answer["until_t"]) == ([], hung.fault_t + 60)


def test_other_thresholds_are_held_against_those_that_are_configured(hung: fleet.Fleet) -> None:
    answer = answered(hung.run_dir.path, "--set", "stall_floor_s=30")
    (now,), (was,) = answer["incidents"], answer["before"]["incidents"]
    assert now["detection_s"] == pytest.approx(was["detection_s"] - 60)
    shown = backtest(hung.run_dir.path, "--set", "stall_floor_s=30").stdout
    assert "stall_floor_s=30\n" in shown
    assert "as it is configured now\n" in shown
    assert "found, after 3" in shown


def test_several_runs_stand_in_one_table_with_their_totals(hung: fleet.Fleet, healthy: fleet.Fleet) -> None:
    runs = (hung.run_dir.path, healthy.run_dir.path)
    answer = answered(*runs)
    assert [it["run"] for it in answer["runs"]] == ["hung", "healthy"]
    figures = {key: answer["totals"][key] for key in ("runs", "incidents", "found", "pages", "false_pages")}
    assert figures == {"runs": 2, "incidents": 1, "found": 1, "pages": 1, "false_pages": 0}
    lines = [line.split()[0] for line in backtest(*runs).stdout.splitlines() if line.startswith("    ")]
    assert lines == ["run", "hung", "healthy", "together"]


def test_what_really_happened_may_be_told(hung: fleet.Fleet, tmp_path: Path) -> None:
    assert hung.fault_t is not None
    told = tmp_path / "incidents.jsonl"
    told.write_text(json.dumps({"run": "hung", "t": hung.fault_t - 20, "kind": "NIC"}) + "\n")
    answer = answered(hung.run_dir.path, "--incidents", told)
    (incident,) = answer["incidents"]
    assert (incident["kind"], answer["incidents_from"]) == ("NIC", "file")
    assert 110 <= incident["detection_s"] <= 116


def test_where_nothing_happened_a_page_was_for_nothing(hung: fleet.Fleet, tmp_path: Path) -> None:
    told = tmp_path / "incidents.jsonl"
    told.write_text('{"run": "another", "t": 1.0}\n')
    ended = backtest(hung.run_dir.path, "--incidents", told)
    assert ended.exit_code == 1
    assert "for nothing\n  - hung: TrainingStepStalled at 2027-" in ended.stdout


def test_a_page_that_did_not_come_is_missed(healthy: fleet.Fleet, tmp_path: Path) -> None:
    told = tmp_path / "incidents.jsonl"
    told.write_text(json.dumps({"run": "healthy", "t": fleet.START_T + 60, "kind": "power"}) + "\n")
    ended = backtest(healthy.run_dir.path, "--incidents", told)
    assert ended.exit_code == 1
    assert "missed\n  - healthy: power at 2027-" in ended.stdout


def test_a_run_that_cannot_be_read_stops_none_of_the_others(
    hung: fleet.Fleet, healthy: fleet.Fleet, tmp_path: Path
) -> None:
    broken, gone = tmp_path / "broken", tmp_path / "gone"
    broken.mkdir()
    (broken / "run.json").write_text("[]")
    ended = backtest(broken, hung.run_dir.path, gone, healthy.run_dir.path, "--json")
    answer = json.loads(ended.stdout)
    assert [it["run"] for it in answer["runs"]] == ["hung", "healthy"]
    assert [it["path"] for it in answer["not_judged"]] == [str(broken), str(gone)]
    assert (answer["totals"]["runs"], ended.exit_code) == (2, 2)
    assert [line.split(": ")[1] for line in ended.stderr.splitlines()] == [f"{broken}/run.json", str(gone)]


def test_what_was_not_judged_stands_in_the_report(hung: fleet.Fleet, tmp_path: Path) -> None:
    shown = backtest(hung.run_dir.path, tmp_path / "gone").stdout
    assert shown.startswith("1 of 1 incidents found, after 9")
    assert "; 1 run not judged\n" in shown
    assert f"not judged\n  - {tmp_path}/gone: there is no such run directory" in shown


@needs_promtool
def test_prometheus_says_the_same(hung: fleet.Fleet) -> None:
    ours, theirs = (
        answered(hung.run_dir.path, "--engine", engine)["alerts"] for engine in ("embedded", "prometheus")
    )
    (own,), (other,) = (
        [{key: it[key] for key in it if key not in ("summary", "notified_t")} for it in those]
        for those in (ours, theirs)
    )
    assert own == other
    assert theirs[0]["notified_t"] == theirs[0]["fired_t"] + Alerts().group_wait_s
    assert "hung: no step completed for " in theirs[0]["summary"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "stall_flor_s=60"], "--set: unknown key stall_flor_s in [alerts]; known are checkpoint_"),
        (["--set", "stall_floor_s=soon"], "--set: alerts.stall_floor_s must be like 90.0, is 'soon'"),
        (["--set", "stall_floor_s"], "wanted is NAME=VALUE, like stall_floor_s=60"),
        (["--since", "100", "--until", "50"], "--since is not before --until"),
        (["--incidents", "/nowhere/incidents.jsonl"], "/nowhere/incidents.jsonl: No such file"),
    ],
)
def test_what_cannot_be_used_is_one_line(hung: fleet.Fleet, arguments: list[str], said: str) -> None:
    ended = backtest(hung.run_dir.path, *arguments)
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_of_a_folder_without_lines_it_cannot_be_told(tmp_path: Path) -> None:
    ended = backtest(tmp_path)
    assert ended.exit_code == 3
    assert "no line of it has a time, so nothing could be judged" in ended.stdout
