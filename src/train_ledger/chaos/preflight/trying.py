"""Does everything that a long run needs hold here?

Runs the preflight's job and the drills, reads what RUN itself tells of a dry run, and puts each item's checks
together. Whatever is started ends with this, and nothing stays but what RUN/preflight keeps.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from train_ledger.chaos.preflight.judging import Judging
from train_ledger.chaos.preflight.tries import Tries
from train_ledger.chaos.preflight.wanted import Wanted
from train_ledger.config import Config
from train_ledger.ops import preflight as room
from train_ledger.ops.coverage import Coverage, coverage
from train_ledger.ops.preflight import ItemAnswer, Preflight
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["preflight"]


def preflight(
    run_dir: RunDir | None, config: Config, wanted: Wanted, say: Callable[[str], None] = lambda _: None
) -> Preflight:
    """Check what is wanted; `say` is told what goes on. Raises RunDirError and PreflightError."""
    began_t, began = time.time(), time.monotonic()
    with _work_folder(run_dir) as folder:
        tried = Tries(run_dir, config, wanted, folder, say)
        tried.run()
        judging = Judging(tried)
        items = tuple(room.answer_of(key, judging.checks_of(key)) for key in wanted.items)
        _keep_baseline(run_dir, tried.own, items)
        return Preflight(
            run=str(run_dir.path) if run_dir else None,
            began_t=began_t,
            took_s=time.monotonic() - began,
            where=tried.where,
            items=items,
            not_asked=tuple(it.title for it in room.ITEMS if it.key not in wanted.items),
            coverage=_coverage(run_dir, config),
        )


@contextlib.contextmanager
def _work_folder(run_dir: RunDir | None) -> Iterator[Path]:
    """On the run's own storage, since that is what is tried; removed in the end."""
    place = run_dir.path / "preflight" if run_dir else None
    try:
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
        folder = Path(
            tempfile.mkdtemp(prefix="train-ledger-preflight-" if place is None else "work-", dir=place)
        )
    except OSError as error:
        raise RunDirError(
            f"{place or tempfile.gettempdir()}: {error.strerror}; give the right to write"
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_baseline(run_dir: RunDir | None, own: room.OwnRun | None, items: Collection[ItemAnswer]) -> None:
    """Of the run's own training, where the item of the base passed."""
    base = room.own_base(own) if own is not None else None
    passes = any(it.key == "mfu" and it.verdict == "pass" for it in items)
    if run_dir is not None and base is not None and base.mfu is not None and passes:
        run_dir.merge_run({"mfu_baseline": round(base.mfu, 2)})


def _coverage(run_dir: RunDir | None, config: Config) -> Coverage | None:
    """Which causes could be told of the run by what arrives of it, where something does."""
    if run_dir is None or not any(run_dir.signal_files()):
        return None
    return coverage(run_dir, config)
