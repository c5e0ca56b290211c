"""Runs in which an alert fires about now, and the programs that a runbook's commands call on a node."""

from __future__ import annotations

import itertools
import json
import os
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path

from train_ledger.chaos.days import FAULTS, faulty_day, write_day
from train_ledger.run_dir import RunDir

__all__ = ["run_in_which", "stand_ins"]

_AFTER_S = 60.0
_HOURS = (1.05, 1.1)
_DISPLAYS = {
    "MEMORY",
    "UTILIZATION",
    "ECC",
    "TEMPERATURE",
    "POWER",
    "CLOCK",
    "COMPUTE",
    "PIDS",
    "PERFORMANCE",
    "SUPPORTED_CLOCKS",
    "PAGE_RETIREMENT",
    "ROW_REMAPPER",
}
"""What `nvidia-smi -q -d` takes, by its manual."""


def run_in_which(alert: str, folder: Path) -> RunDir:
    """The directory of a run as it stands a minute after this alert could come."""
    kind = next(kind for kind, fault in FAULTS.items() if alert in fault.alerts)
    day = faulty_day(kind, 1, _HOURS)
    for _ in day.told:
        pass  # what is true of a day is known at its end
    now = time.time()
    moved = faulty_day(kind, 1, _HOURS, start_t=now - _AFTER_S - (day.truth.earliest_t - day.start_t))
    told = itertools.takewhile(lambda it: it.at <= now, moved.told)
    run_dir = write_day(folder, replace(moved, told=told))
    alert = {"name": alert, "level": "page", "labels": {"run": day.name}, "fired_t": now, "summary": alert}
    incident = {
        "id": "20261130T031205Z-Page",
        "run": day.name,
        "opened_t": now,
        "members": [{"alert": alert}],
    }
    entry = {"t": now, "kind": "incident_opened", "incident": incident["id"], "record": incident}
    run_dir.ledger.mkdir()
    run_dir.journal.write_text(json.dumps(entry) + "\n")
    return run_dir


def stand_ins(folder: Path) -> dict[str, str]:
    """An environment in which a node answers: ssh runs here, and what it would call there is checked."""
    folder.mkdir()
    own = f'exec "{sys.executable}" -m train_ledger'
    quick = (
        'case "$1 $2" in "dump "*|"ask "*) set -- "$@" --timeout-s 1;; '
        '"trace take") set -- "$@" --wait-s 1;; esac'
    )
    programs = {
        "train-ledger": f'{quick}\n{own} "$@"',
        "ssh": 'while case "$1" in -*) true;; *) false;; esac; do shift; done\nshift\nexec sh -c "$*"',
        "sudo": 'exec "$@"',
        "dmesg": '[ "$1" = -T ] && echo "[  12.3] NVRM: Xid (PCI:0000:9b:00): 79, pcie killed process"',
        "systemctl": '[ "$1" = status ] && [ "$2" = train-ledger-export ] && echo "active (running)"',
        "curl": '[ "$1" = -s ] && case "$2" in *:9466/healthz) echo ok;; *) exit 6;; esac',
        "nvidia-smi": f'exec "{sys.executable}" {folder / "smi.py"} "$@"',
    }
    (folder / "smi.py").write_text(
        "import sys\n"
        f"known = {sorted(_DISPLAYS)!r}\n"
        "rest = sys.argv[1:]\n"
        "fits = rest == ['-L'] or rest[:2] == ['-q', '-d'] and set(rest[2].split(',')) <= set(known)\n"
        "sys.exit(print('GPU 0: H100') if fits else 2)\n"
    )
    for name, text in programs.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
