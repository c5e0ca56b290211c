"""How does the preflight's job run on this machine, and does its launcher bring it back when a rank dies?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from train_ledger.chaos import servers
from train_ledger.ops.preflight import OWN_STORE_VARIABLE, Launched, read_figures

__all__ = ["command_of", "environment_of", "run_job", "said_last"]

_WITHIN_S = 240.0
_LAUNCHERS_OWN = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "MASTER_"),
    *("TORCHELASTIC_",),
)
_ERROR_WORDS = ("Error", "error:", "refused")
_LONGEST = 300


def run_job(folder: Path, ranks: int, stages: Sequence[str], load_s: float) -> Launched:
    """Let the ranks do their stages in `folder`, which is made anew; it is over when this returns.

    Where a rank is to be killed and the job does not come back, it is tried once more with a store of its own
    for each attempt: that tells whether the launcher's shared store is what keeps the ranks apart.
    """
    first = _once(folder, ranks, stages, load_s, {})
    if first.came_back or "kill" not in stages or os.environ.get(OWN_STORE_VARIABLE):
        return first
    second = _once(folder, ranks, stages, load_s, {OWN_STORE_VARIABLE: "1"})
    if not second.came_back:
        return first
    return replace(second, only_with=OWN_STORE_VARIABLE, said=first.said)


def _once(folder: Path, ranks: int, stages: Sequence[str], load_s: float, more: dict[str, str]) -> Launched:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "torchrun.log"
    command = ["env", *_without(), *command_of(folder, ranks, stages, load_s)]
    with servers.child(command, log, environment_of(more)) as process:
        try:
            status = process.wait(_WITHIN_S + load_s)
        except subprocess.TimeoutExpired:
            return Launched(False, said=f"it was not over within {_WITHIN_S + load_s:.0f} s")
    if status:
        return Launched(False, said=said_last(folder))
    taken_up = [it.taken_up for it in read_figures(folder).values()]
    if "kill" in stages and not all(it is not None and it.restarts for it in taken_up):
        return Launched(False, said="it ended without having been restarted")
    return Launched(True)


def _without() -> list[str]:
    """Words for `env` that drop what a launcher around us has set for its own ranks."""
    names = [name for name in os.environ if name.startswith(_LAUNCHERS_OWN)]
    return [word for name in names for word in ("-u", name)]


def environment_of(more: dict[str, str]) -> dict[str, str]:
    """What the job has beside our own environment."""
    return {"OMP_NUM_THREADS": "1", **more}


def command_of(folder: Path, ranks: int, stages: Sequence[str], load_s: float) -> list[str]:
    """What starts the job on this machine."""
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)),
        *("--max-restarts", "1" if "kill" in stages else "0", "--monitor-interval", "0.1"),
        *("--log-dir", str(folder / "logs"), "--redirects", "3"),
        *("-m", "train_ledger.chaos.preflight.job", "--folder", str(folder)),
        *("--stages", ",".join(stages), "--load-s", str(load_s)),
    ]


def said_last(folder: Path) -> str:
    """The last line of the last attempt's ranks that speaks of an error, else the launcher's own last."""
    for path in sorted(folder.glob("logs/*/attempt_*/*/stderr.log"), reverse=True):
        lines = path.read_text(errors="replace").splitlines()
        if told := [line for line in lines if any(word in line for word in _ERROR_WORDS)]:
            return told[-1].strip()[:_LONGEST]
    try:
        lines = (folder / "torchrun.log").read_text(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip()[:_LONGEST] for line in reversed(lines) if line.strip()), "")
