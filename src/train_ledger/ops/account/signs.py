"""When did the run show signs of life and death, by the keeper's journal and by its dumps?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from train_ledger.ledger import journal
from train_ledger.ledger.accounts import Sign
from train_ledger.run_dir import RunDir

__all__ = ["signs_beside"]

_OPENED = frozenset({"incident_opened", "notification_intended"})
_GONE = "TrainingProcessGone"
_LATEST_T = 1e11


def signs_beside(run_dir: RunDir, attempts: int) -> list[Sign]:
    """What the journal and the dumps of the first so many attempts tell, in no order.

    Raises JournalError where the journal is there and cannot be read.
    """
    entries = journal.read(run_dir.journal).entries
    found = [sign for entry in entries for sign in _of_entry(entry)]
    for attempt in range(attempts):
        found += _of_dumps(run_dir.comm_traces(attempt))
    return found


def _of_entry(entry: Mapping[str, Any]) -> Iterator[Sign]:
    t, kind = entry["t"], entry["kind"]
    if isinstance(t, bool) or not isinstance(t, int | float) or not abs(t) < _LATEST_T:
        return
    t_us = round(t * 1e6)
    if kind in _OPENED:
        yield Sign(t_us, "opened", source="journal")
    elif kind == "response_started" and entry.get("living"):
        yield Sign(t_us, "alive", "ranks answered", source="journal")
    elif kind == "response_done":
        yield Sign(t_us, "dumped", source="journal")
    elif kind == "alert_fired" and entry.get("alert") == _GONE:
        yield Sign(t_us, "gone", _GONE, source="journal")
    elif kind == "state_changed" and entry.get("state") == "stopped":
        yield Sign(t_us, "gone", "stopped", source="journal")


def _of_dumps(folder: Path) -> Iterator[Sign]:
    """When the last dump of an attempt was written: until then its rank lived."""
    try:
        written = [it.stat().st_mtime for it in folder.glob("rank_*")]
    except OSError:  # not ours to read
        return
    if written and math.isfinite(newest := max(written)):
        yield Sign(round(newest * 1e6), "dumped", source=f"{folder.name}/")
