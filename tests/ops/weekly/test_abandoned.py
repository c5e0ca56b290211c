"""A run of which nothing is heard any more wastes no GPU-hours that nobody knows of."""

from __future__ import annotations

import json

import pytest

from train_ledger.config import Config
from train_ledger.ledger import Journal
from train_ledger.ops.weekly import weekly
from train_ledger.run_dir import RunDir

from .journals import DAY_S, T

OPENED = {"t": T + 400, "kind": "incident_opened", "incident": "i1", "alert": "TrainingStepStalled"}
CLOSED = {"t": T + 500, "kind": "incident_closed", "incident": "i1"}


@pytest.fixture
def run(tmp_path):
    """Two ranks, a hundred steps of two seconds from T on, and no line since."""
    run = RunDir(tmp_path / "r42")
    run.signals.mkdir(parents=True)
    run.path.joinpath("run.json").write_text(json.dumps({"run": "r42", "gpu_price_per_hour": 2.0}))
    for rank in range(2):
        start = {"t": T, "step": 0, "event": "run_start", "world_size": 2, "host": "n1", "gpu": rank}
        lines = [start, *({"t": T + 60 + 2 * step, "step": step, "loss": 2.0} for step in range(1, 101))]
        run.signals_of(rank).write_text("".join(json.dumps({"rank": rank, **it}) + "\n" for it in lines))
    return run


@pytest.mark.parametrize(
    ("journal", "lost_hours"),
    [((), 0), ((OPENED, CLOSED), 0), ((OPENED,), 2 * 7 * 24)],
    ids=["nobody watched", "its incident is over", "it stands, and its incident is open"],
)
def test_the_days_after_its_last_line(run, journal, lost_hours):
    if journal:
        kept = Journal(run.journal)
        for entry in journal:
            kept.append(entry)
        kept.close()
    (told,) = weekly([(run, Config())], T + 20 * DAY_S, T + 27 * DAY_S).runs
    assert told.lost_gpu_hours == pytest.approx(lost_hours)
    said = [it for it in told.accounts.not_observed if it.startswith("what came after the last line")]
    assert bool(said) == (lost_hours == 0)
