"""Commands are written out for the hosts and ranks that the journal names, and for no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from train_ledger.ops.runbook import Places, filled, places_of
from train_ledger.run_dir import RunDir

BLOCK = (
    "1. Look.\n\n   ```sh\n   train-ledger rank RUN RANK\n   ssh HOST uptime\n   ```\n\nRUN in prose stays."
)


def test_a_line_is_written_out_for_each_host_and_each_rank() -> None:
    text = filled(BLOCK, Places("/runs/a b", ("n1", "n2"), (5, 7)))
    assert [line.strip() for line in text.splitlines() if line.startswith("   ") and "```" not in line] == [
        "train-ledger rank '/runs/a b' 5",
        "train-ledger rank '/runs/a b' 7",
        "ssh n1 uptime",
        "ssh n2 uptime",
    ]
    assert text.endswith("RUN in prose stays.")


def test_what_nothing_tells_stays_as_it_is() -> None:
    assert filled(BLOCK, Places()) == BLOCK


def test_of_many_hosts_the_first_ones_will_do() -> None:
    text = filled(BLOCK, Places(hosts=tuple(f"n{number}" for number in range(1000))))
    assert text.count("uptime") == 4


def run_with(folder: Path, *entries: dict[str, Any]) -> RunDir:
    run_dir = RunDir(folder)
    run_dir.ledger.mkdir(parents=True)
    run_dir.journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return run_dir


def opened(**labels: str) -> dict[str, Any]:
    alert = {"name": "GpuXidError", "labels": labels}
    return {"t": 1.0, "kind": "incident_opened", "record": {"members": [{"alert": alert}]}}


def verdict(hosts: list[Any], ranks: list[Any]) -> dict[str, Any]:
    return {"t": 2.0, "kind": "verdict", "diagnosis": {"hosts": hosts, "ranks": ranks}}


def test_the_newest_verdict_names_them(tmp_path: Path) -> None:
    run_dir = run_with(tmp_path, verdict(["n1"], [1]), opened(host="n3"), verdict(["n2"], [2]))
    assert places_of(run_dir) == Places(str(tmp_path), ("n2",), (2,))


def test_without_a_verdict_the_alert_does(tmp_path: Path) -> None:
    run_dir = run_with(tmp_path, opened(host="n3", rank="12"), verdict([], []))
    assert places_of(run_dir, "GpuXidError") == Places(str(tmp_path), ("n3",), (12,))
    assert places_of(run_dir, "TrainingStepStalled") == Places(str(tmp_path))


@pytest.mark.parametrize("host", ["-oProxyCommand=touch /tmp/x", "a b", "", 5, None, "n1;reboot"])
def test_no_name_becomes_an_option_or_a_command(tmp_path: Path, host: Any) -> None:
    assert places_of(run_with(tmp_path, verdict([host], [True, "x", -1, 10**12]))).hosts == ()


def test_a_run_without_a_journal_names_nobody(tmp_path: Path) -> None:
    assert places_of(RunDir(tmp_path)) == Places(str(tmp_path))
