"""What each incident cost is what its postmortem says."""

from __future__ import annotations

import pytest

from ops.postmortem.seed_run import INCIDENT, make_run
from train_ledger.config import load
from train_ledger.ops.account import account
from train_ledger.ops.postmortem import losses, postmortem


def test_the_loss_of_the_seed_s_incident(tmp_path) -> None:
    run = make_run(tmp_path)
    config = load(run)
    told = losses(run, config, account(run, config))
    assert [*told] == [INCIDENT]
    assert told[INCIDENT] == postmortem(run, config).loss.impact
    assert told[INCIDENT].gpu_hours == pytest.approx(told[INCIDENT].wall_s * 1024 / 3600)
    assert told[INCIDENT].cost == pytest.approx(told[INCIDENT].gpu_hours * 2.5)


def test_a_run_without_incidents_has_none(tmp_path) -> None:
    run = make_run(tmp_path)
    run.journal.unlink()
    config = load(run)
    assert losses(run, config, account(run, config)) == {}
