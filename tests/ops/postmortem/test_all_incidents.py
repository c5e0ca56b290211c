"""All incidents of a journal are those that it tells one by one, however many there are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from train_ledger.ledger import journal
from train_ledger.ops.postmortem.incident import all_incidents, incident_of
from train_ledger.run_dir import RunDir

T0 = 1_796_007_600.0
OF_ONE = (
    "incident_opened",
    "alert_fired",
    "response_done",
    "verdict",
    "notification_done",
    "incident_closed",
)


def kept(folder: Path, incidents: int, *, closed: bool = True) -> RunDir:
    """A run whose incidents overlap: each is closed only once the next one is open."""
    told = [
        {"t": T0 + 100 * (number + 2 * (kind == "incident_closed")), "kind": kind, "incident": f"i{number}"}
        for number in range(incidents)
        for kind in OF_ONE
        if closed or kind != "incident_closed"
    ]
    told += [
        {"t": T0 + 100 * number, "kind": "state_changed", "state": "running"} for number in range(incidents)
    ]
    run_dir = RunDir(folder)
    run_dir.journal.parent.mkdir(parents=True)
    lines = (json.dumps(entry) for entry in sorted(told, key=lambda entry: float(str(entry["t"]))))
    run_dir.journal.write_text("".join(f"{line}\n" for line in lines))
    return run_dir


def test_they_are_those_that_are_told_one_by_one(tmp_path: Path) -> None:
    for closed in (True, False):
        run_dir = kept(tmp_path / str(closed), 9, closed=closed)
        assert all_incidents(run_dir) == [incident_of(run_dir, f"i{number}") for number in range(9)]


def test_of_many_each_line_is_looked_at_a_few_times(tmp_path: Path) -> None:
    """The page asks every minute: by each incident anew that takes two hundred times as long as reading."""
    run_dir = kept(tmp_path, 1500)
    read_s = took_s(lambda: journal.numbered(run_dir.journal))
    assert took_s(lambda: all_incidents(run_dir)) < 40 * read_s


def took_s(work: Callable[[], object]) -> float:
    """The shortest of three times."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)
