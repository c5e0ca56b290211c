"""What is wrong with a run, asked from a shell."""

from __future__ import annotations

import json
import os
from pathlib import Path

from typer.testing import CliRunner, Result

from hang.recorder import Job
from train_ledger.cli import app

STARTED_T = 1_800_000_000.0


def _run(folder: Path, steps: int) -> Path:
    """Two ranks that make a step a second, in the past."""
    (folder / "signals").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"run": "r42", "world_size": 2, "started": STARTED_T}))
    for rank in range(2):
        start = {"t": STARTED_T, "event": "run_start", "rank": rank, "host": "node-a", "pid": 1 << 22}
        lines = [start]
        lines += [
            {"t": STARTED_T + step, "step": step, "rank": rank, "loss": 2.0, "step_time_s": 1.0}
            for step in range(1, steps + 1)
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "signals" / f"rank_{rank:05d}.jsonl").write_text(text)
    return folder


def _diagnose(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["diagnose", *map(str, arguments)], catch_exceptions=False)


def test_nothing_wrong_while_it_ran(tmp_path: Path) -> None:
    run = _run(tmp_path, 60)
    told = _diagnose(run, "--at", f"{STARTED_T + 60.5}")
    assert told.stdout.startswith("nothing wrong: the run is running\n")
    assert told.exit_code == 0


def test_a_hang_without_evidence_accuses_nobody(tmp_path: Path) -> None:
    run = _run(tmp_path, 60)
    told = _diagnose(run, "--at", "2027-01-15T08:10:00+00:00", "--json")
    answer = json.loads(told.stdout)
    assert (answer["schema"], answer["state"], answer["ranks"]) == (1, "stalled", [])
    assert answer["not_observed"], "it says what it did not see"
    assert told.exit_code in (1, 3)


def test_the_report_is_a_page(tmp_path: Path) -> None:
    run = _run(tmp_path / "run", 60)
    _diagnose(run, "--at", f"{STARTED_T + 60.5}", "--html", tmp_path / "report.html")
    assert "nothing wrong: the run is running</h1>" in (tmp_path / "report.html").read_text()


def test_an_empty_run_directory_says_so_in_its_first_line(tmp_path: Path) -> None:
    told = _diagnose(tmp_path)
    assert told.exit_code == 3
    assert told.stdout.startswith("cannot tell, because no rank has written a line (signals/)\n")


def test_a_world_of_a_billion_ranks_is_ignored_and_said(tmp_path: Path) -> None:
    run = _run(tmp_path, 60)
    (run / "run.json").write_text(json.dumps({"world_size": 10**9}))
    for arguments in (["diagnose", run], ["hang", "--run", run]):
        told = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
        assert "world_size of run.json: is no number of ranks (1 to 1048576), ignored" in told.stdout


def test_what_was_not_read_of_the_signals_is_said(tmp_path: Path) -> None:
    run = _run(tmp_path, 60)
    with (run / "signals" / "rank_00001.jsonl").open("a") as file:
        file.write("garbage\nmore of it\n")
    for arguments in (["diagnose", run], ["hang", "--run", run]):
        told = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
        assert "signals not read: 2 × not_json (signals/rank_00001.jsonl:63)" in told.stdout


def test_a_price_that_is_none_is_not_reckoned_with(tmp_path: Path) -> None:
    run = _run(tmp_path, 60)
    (run / "run.json").write_text('{"started": 1e300, "gpu_price_per_hour": 1' + "0" * 400 + "}")
    told = _diagnose(run, "--json", "--at", str(STARTED_T + 900))
    assert json.loads(told.stdout)["impact"]["cost"] is None


def test_signals_that_are_no_folder_are_the_reason(tmp_path: Path) -> None:
    (tmp_path / "signals").write_text("")
    told = _diagnose(tmp_path)
    assert told.stdout.startswith("cannot tell, because signals not read: 1 × not_a_folder (signals)\n")


def test_the_table_of_a_hang_stands_in_text_and_report(tmp_path: Path) -> None:
    run = _run(tmp_path / "run", 60)
    job = Job(2)
    job.issue([0, 1], done=True)
    job.issue([0])
    for dump in job.write(run / "comm_traces").iterdir():
        os.utime(dump, (STARTED_T + 200, STARTED_T + 200))
    told = _diagnose(run, "--at", f"{STARTED_T + 300}", "--html", tmp_path / "report.html")
    assert told.stdout.startswith("culprit: rank 1 on node-a\n")
    assert "\n  > 2   all_reduce [4] Float, scheduled   ! has not come\n" in told.stdout
    report = (tmp_path / "report.html").read_text()
    assert '<td class="absent">has not come</td>' in report
    assert "<h2>who waits for whom</h2>" in report
