"""What is wrong with a run, asked from a shell."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner, Result

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
