"""`train-ledger lint` on a run, a folder and a scrape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from train_ledger.chaos import fleet
from train_ledger.cli import app
from train_ledger.dash import RULES


def invoke(*arguments: object) -> tuple[int, str, str]:
    answer = CliRunner().invoke(app, ["lint", *map(str, arguments)])
    return answer.exit_code, answer.stdout, answer.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lint") / "r42"
    fleet.write(path, hosts=1, ranks_per_host=2, steps=60, checkpoint_every=10, fault="hang")
    return path


def test_a_run_without_gpu_metrics_is_told_what_will_never_fire_and_how_to_get_it(run: Path) -> None:
    status, out, _ = invoke("--run", run)
    assert status == 1
    assert "never   GpuEccDbe can never fire" in out
    assert "needs dcgm-exporter with this field in its counters file" in out
    assert "TrainingStepStalled can never fire" not in out


def test_what_a_run_wrote_that_is_long_over_is_not_told_to_be_missing(tmp_path: Path) -> None:
    """An exporter shows no figures of ranks that fell silent long ago."""
    (tmp_path / "signals").mkdir()
    lines = [{"t": 1.7e9, "rank": 0, "event": "run_start", "host": "n0", "world_size": 1}]
    lines += [{"t": 1.7e9 + 10 * step, "rank": 0, "step": step, "grad_norm": 0.5} for step in range(1, 30)]
    (tmp_path / "signals" / "rank_00000.jsonl").write_text("".join(json.dumps(it) + "\n" for it in lines))
    _, out, _ = invoke("--run", tmp_path)
    assert "GradNormSpike" not in out
    assert "no rank writes grad_norm" not in out


def test_json(run: Path) -> None:
    status, out, _ = invoke("--run", run, "--json")
    answer = json.loads(out)
    assert (status, answer["schema"]) == (1, 1)
    assert answer["checked"]["alerts"] == len(RULES)
    assert {"severity", "where", "what", "why", "fix"} == set(answer["findings"][0])


def test_nothing_to_hold_it_against(tmp_path: Path) -> None:
    status, _, err = invoke()
    assert status == 2
    assert "--url" in err
    (tmp_path / "scrape.txt").write_text("up 1\n")
    status, _, err = invoke(tmp_path, "--file", tmp_path / "scrape.txt")
    assert (status, "no file in it has alerting rules" in err) == (2, True)
