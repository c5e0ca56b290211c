"""How do the ranks of a whole cluster measure together, under a launcher of the user's own?"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from train_ledger.chaos.preflight.job import measure
from train_ledger.chaos.preflight.trying import preflight
from train_ledger.chaos.preflight.wanted import MEASURED, STAGES_OF, Wanted
from train_ledger.config import Config
from train_ledger.ops.preflight import Preflight, PreflightError
from train_ledger.run_dir import RunDir

__all__ = ["measured_as_rank"]

_TOGETHER = ("gpu", "bandwidth", "clocks", "mfu", "restore", "layout", "faults", "recorder")


def measured_as_rank(run_dir: RunDir, config: Config, wanted: Wanted) -> Preflight | None:
    """Measure on this rank what is wanted and can be told together; the answer on rank 0, None on the others.

    Nothing is killed, and no drill is run. Raises PreflightError where nothing of it is wanted.
    """
    items = tuple(key for key in wanted.items if key in _TOGETHER)
    if not items:
        raise PreflightError(f"--as-rank measures {', '.join(_TOGETHER)}; none of them is asked for")
    stages = {stage for key in items for stage in STAGES_OF.get(key, ("bandwidth",))} - {"kill"}
    folder = run_dir.path / MEASURED
    if int(os.environ["RANK"]) == 0:
        _drop_stale(folder, int(os.environ["WORLD_SIZE"]))
    measure(folder, sorted(stages), load_s=wanted.load_s)
    if int(os.environ["RANK"]) != 0:
        return None
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    return preflight(run_dir, config, replace(wanted, items=items, cluster_only=True))


def _drop_stale(folder: Path, ranks: int) -> None:
    """What a larger job left, which nobody writes anew."""
    for path in folder.glob("rank_*.json"):
        number = path.stem.removeprefix("rank_")
        if number.isdecimal() and int(number) >= ranks:
            path.unlink(missing_ok=True)
