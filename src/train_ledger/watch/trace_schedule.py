"""Is there always an earlier trace to compare a slow step with?

On schedule a few ranks are asked for a trace, while the run goes on steadily and nobody else asks anything.
The newest of each rank are kept; nothing is removed that this schedule did not ask for.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from train_ledger.config import Trace
from train_ledger.ledger import RunState
from train_ledger.ops.asking.taking import Taken, is_asked, spread_ranks, take
from train_ledger.render import ranks_in_words
from train_ledger.run_dir import RunDir

__all__ = ["TraceSchedule", "remove_oldest"]

_SCHEDULED = re.compile(r"scheduled-(\d{1,12})\Z")
_TRACE = re.compile(r"rank_(\d{1,9})\.json\.gz\Z")
_UNFINISHED = ".unfinished.rank_*.json.gz"
_MOST_STEPS = 100
_MOST_TOLD = 16


class _Record(Protocol):
    """Writes an entry of this kind into the journal."""

    def __call__(self, kind: str, **details: Any) -> object: ...


class TraceSchedule:
    """The schedule of one run's keeper; `record` writes each taking into the journal as "traces_taken"."""

    def __init__(self, run_dir: RunDir, wanted: Trace, record: _Record) -> None:
        self._run_dir = run_dir
        self._wanted = wanted
        self._record = record
        self._last_t = max((t for t, _ in _folders(run_dir)), default=float("-inf"))
        self._taking: threading.Thread | None = None
        self._outcomes: list[dict[str, Any]] = []

    def attend(self, state: RunState, *, is_troubled: bool) -> None:
        """Ask where it is time and the run can be asked; write down what came of the last time."""
        while self._outcomes:
            self._record("traces_taken", **self._outcomes.pop(0))
        if self._wanted.every_s <= 0 or (self._taking is not None and self._taking.is_alive()):
            return
        if state.t - self._last_t < self._wanted.every_s or is_troubled or not _goes_on(state):
            return
        if is_asked(self._run_dir, state.t):
            return
        self._last_t = state.t
        ranks = self._wanted.ranks or spread_ranks(state.world_size or len(state.ranks))
        self._taking = threading.Thread(
            target=self._take, args=(f"scheduled-{state.t:.0f}", ranks), name="trace schedule", daemon=True
        )
        self._taking.start()

    def close(self) -> None:
        """What is being taken is left to the ranks; who keeps the run next finds it."""
        self._taking = None

    def _take(self, name: str, ranks: tuple[int, ...]) -> None:
        steps = min(max(self._wanted.steps, 1), _MOST_STEPS)
        try:
            taken = take(self._run_dir, name, ranks, steps=steps, wait_s=self._wanted.wait_s)
            removed = remove_oldest(self._run_dir, self._wanted.keep)
        except OSError as error:
            summary = f"no trace was taken: {error}"
            self._outcomes.append({"name": name, "ranks": [], "failed": {}, "removed": 0, "summary": summary})
            return
        self._outcomes.append(_outcome(name, taken, removed))


def _goes_on(state: RunState) -> bool:
    """Whether it has a pace, stands nowhere, and is in no phase that is none of a step."""
    is_steady = state.state == "running" and state.p50_step_time_s is not None and state.phase is None
    return is_steady and not state.finished and state.stalled_for_s < state.stall_threshold_s / 2


def _outcome(name: str, taken: Taken, removed: int) -> dict[str, Any]:
    """As the journal has it: why at most sixteen ranks failed, and of all of them that they did."""
    failed = {str(rank): why[:200] for rank, why in list(taken.answers.failed.items())[:_MOST_TOLD]}
    return {
        "name": name,
        "ranks": sorted(taken.answers.files),
        "failed": failed,
        "removed": removed,
        "summary": _in_words(taken, removed),
    }


def _in_words(taken: Taken, removed: int) -> str:
    files, failed = taken.answers.files, taken.answers.failed
    said = f"traces of {ranks_in_words(list(files))} taken" if files else "no trace was taken"
    reasons = "; ".join(f"rank {rank}: {why}" for rank, why in list(failed.items())[:4])
    return said + (f", {removed} old ones removed" if removed else "") + (f" ({reasons})" if reasons else "")


class _Folder(NamedTuple):
    t: float
    path: Path


def _folders(run_dir: RunDir) -> Iterator[_Folder]:
    """The folders that a schedule asked for, of all attempts."""
    root = run_dir.traces()
    for path in (*_inside(root), *(it for folder in _inside(root) for it in _inside(folder))):
        if match := _SCHEDULED.match(path.name):
            yield _Folder(float(match[1]), path)


def _inside(folder: Path) -> list[Path]:
    try:
        return [it for it in folder.iterdir() if it.is_dir() and not it.is_symlink()]
    except OSError:
        return []


def remove_oldest(run_dir: RunDir, keep: int) -> int:
    """Remove of each rank the traces that a schedule took, but for the newest `keep`; how many those were.

    Raises OSError where one cannot be removed.
    """
    by_rank: dict[str, list[_Folder]] = defaultdict(list)
    folders = sorted(_folders(run_dir), reverse=True)
    for folder in folders:
        for file in folder.path.iterdir():
            if (match := _TRACE.match(file.name)) and not file.is_symlink():
                by_rank[match[1]].append(_Folder(folder.t, file))
    old = [it.path for listed in by_rank.values() for it in listed[max(keep, 1) :]]
    for path in old:
        path.unlink(missing_ok=True)
    for folder in folders[max(keep, 1) :]:
        _forget(run_dir, folder.path)
    return len(old)


def _forget(run_dir: RunDir, folder: Path) -> None:
    """The folder, if nothing is left in it, and what was asked and answered for it.

    A rank that was killed while it wrote leaves a part of a trace there.
    """
    for part in folder.glob(_UNFINISHED):
        part.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
    if not folder.exists():
        for path in (run_dir.request(folder.name), *run_dir.requests.glob(f"{folder.name}.rank_*.json")):
            path.unlink(missing_ok=True)
