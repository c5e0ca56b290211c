"""Is what makes a job slow on purpose rightly named, from outside?

Runs a real torchrun job of four ranks on this machine, then asks as a person would, by `train-ledger slow`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train_ledger.answer import ExitCode
from train_ledger.chaos.slow_job import MODES, ONSET
from train_ledger.config import Config
from train_ledger.ops.slow import look_at
from train_ledger.render import as_text
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["RANKS", "Drilled", "run_job", "slow_drill"]

RANKS = 4
_WITHIN_S = 300.0
_ONSET_WITHIN = 15
_CAUSES: Mapping[str, str] = {
    "compute": "slow.straggler.software",
    "data": "slow.straggler.software",
    "logging": "slow.logging",
    "none": "none",
}


@dataclass(frozen=True, slots=True)
class Drilled:
    """What was planted, and what was found: cause, ranks and the step since when."""

    mode: str
    planted: tuple[int, ...]
    cause: str
    ranks: tuple[int, ...]
    since_step: int | None

    @property
    def right(self) -> bool:
        """Whether cause and ranks are the planted ones, and the step is near."""
        if (self.cause, self.ranks) != (_CAUSES[self.mode], self.planted):
            return False
        return self.since_step is None or abs(self.since_step - ONSET) <= _ONSET_WITHIN


def slow_drill(
    mode: str,
    culprit: int,
    *,
    folder: Path | None = None,
    as_json: bool = False,
    out: Callable[[str], None] = print,
) -> ExitCode:
    """Make a job slow and see it named; NOTHING_WRONG only where cause and rank are the planted ones.

    `folder` is the run directory to make (None: one that is thrown away). Raises RunDirError where torch is
    not installed or the job fails, and KeyError for a mode that is not in `MODES`.
    """
    with tempfile.TemporaryDirectory(prefix="train-ledger-slow-", ignore_cleanup_errors=True) as throw_away:
        run_dir = RunDir(folder or Path(throw_away) / "run")
        run_job(run_dir, mode, culprit)
        found = look_at(run_dir, Config())
    planted = (culprit,) if mode in ("compute", "data") else ()
    drilled = Drilled(mode, planted, found.cause, found.ranks, found.since_step)
    if as_json:
        out(json.dumps({"schema": 1, **_object(drilled)}))
    else:
        out(as_text(found))
        where = f" on rank {culprit}" if planted else ""
        out(f"planted: {mode}{where}; {'rightly named' if drilled.right else 'NOT rightly named'}")
    return ExitCode.NOTHING_WRONG if drilled.right else ExitCode.TROUBLE


def run_job(run_dir: RunDir, mode: str, culprit: int) -> None:
    """Train until the steps are done. Raises RunDirError as `slow_drill` does."""
    run_dir.path.mkdir(parents=True, exist_ok=True)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)),
        *("-m", "train_ledger.chaos.slow_job", "--run-dir", str(run_dir.path)),
        *("--mode", MODES[MODES.index(mode)], "--culprit", str(culprit)),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, timeout=_WITHIN_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise RunDirError(f"{run_dir.path}: the job did not end within {_WITHIN_S:.0f} s") from error
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise RunDirError(f"{run_dir.path}: the job failed with {ended.returncode}: {said[0][:300]}")


def _object(drilled: Drilled) -> dict[str, Any]:
    return {
        "mode": drilled.mode,
        "planted": list(drilled.planted),
        "cause": drilled.cause,
        "ranks": list(drilled.ranks),
        "since_step": drilled.since_step,
        "right": drilled.right,
    }
