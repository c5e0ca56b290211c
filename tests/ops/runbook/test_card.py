"""The card says where a run's things lie, and what nobody has given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from train_ledger.ops.runbook import card
from train_ledger.run_dir import RunDir


def lines_of(folder: Path, **run_json: Any) -> dict[str, str | None]:
    (folder / "run.json").write_text(json.dumps(run_json))
    return {line.what: line.value for line in card(RunDir(folder))}


def test_a_full_card(tmp_path: Path) -> None:
    (tmp_path / "comm_traces").mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "ranks.jsonl").touch()
    found = lines_of(
        tmp_path,
        run="r42",
        world_size=1024,
        exclude_file="/etc/slurm/exclude",
        restart_command="sbatch train.sh",
        gpu_price_per_hour=2.5,
        contacts={"on call": "Ada", "data": ["Grace", "Alan"]},
    )
    assert found == {
        "run": "r42",
        "world size": "1024",
        "dumps": str(tmp_path / "comm_traces"),
        "stacks": None,
        "logs": str(tmp_path / "logs"),
        "rank map": str(tmp_path / "ranks.jsonl"),
        "exclusion list": "/etc/slurm/exclude",
        "restart": "sbatch train.sh",
        "GPU-hour": "2.5",
        "contact, on call": "Ada",
        "contact, data": "Grace, Alan",
    }


@pytest.mark.parametrize("contacts", [None, "", {}, [], [[]], 3.5, {"on call": ""}])
def test_nobody_is_nobody(tmp_path: Path, contacts: Any) -> None:
    found = lines_of(tmp_path, contacts=contacts)
    assert {value for what, value in found.items() if what.startswith("contact")} == {None}


def test_what_is_not_given_says_how_to_give_it(tmp_path: Path) -> None:
    missing = [line for line in card(RunDir(tmp_path)) if line.value is None]
    assert len(missing) >= 8
    assert all(line.wanted for line in missing)
