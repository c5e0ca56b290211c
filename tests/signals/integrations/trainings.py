"""Runs of real trainers, each script a process of its own, and what they left in their run directories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TRAIN_LEDGER_LEFT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TRAIN_LEDGER_SPEAKER", "TORCHELASTIC_RESTART_COUNT")


def run_script(name: str, *arguments: object, ranks: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a script of this folder to its end, by torchrun where `ranks` are asked for, within two minutes."""
    launcher = [sys.executable]
    if ranks:
        launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    kept = {key: value for key, value in os.environ.items() if key not in TRAIN_LEDGER_LEFT}
    return subprocess.run(
        [*launcher, str(HERE / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=400,
        env={**kept, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"},
    )


def lines(run: Path, rank: int = 0) -> list[dict[str, Any]]:
    path = run / "signals" / f"rank_{rank:05d}.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def steps(run: Path, rank: int = 0) -> list[dict[str, Any]]:
    """The lines of steps."""
    return [line for line in lines(run, rank) if "event" not in line]


def numbers(run: Path, rank: int = 0) -> list[int]:
    return [line["step"] for line in steps(run, rank)]


def order(run: Path, rank: int = 0) -> list[str]:
    """What a run told, in order: steps by their numbers, phases and other events by their names."""
    told = []
    for line in lines(run, rank):
        word = line.get("event") or str(line["step"])
        told.append(word if "phase" not in line else f"{word} {line['phase']}")
    return told


def events(run: Path, name: str, rank: int = 0) -> list[dict[str, Any]]:
    return [line for line in lines(run, rank) if line.get("event") == name]
