"""Where are the steps of a run looked up: in its ranks' own files, or in what its logs tell?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from train_ledger import slow
from train_ledger.ledger import RunState, known_at
from train_ledger.run_dir import RunDir
from train_ledger.slow.table import table_of_facts
from train_ledger.sources import read_run

__all__ = ["history_at", "history_of"]

_STEPS_OF_LOGS = 200_000


def history_of(
    run_dir: RunDir, run: Mapping[str, Any], state: RunState, at: float | None = None
) -> slow.History:
    """Where the steps of a run are looked up: in its ranks' own files, else in what its logs tell."""
    if not state.by_logs:
        return slow.FileHistory(run_dir, at)
    facts = read_run(run_dir).facts
    told = facts if at is None else known_at(facts, at)
    return slow.TableHistory(table_of_facts(told, run, _STEPS_OF_LOGS))


def history_at(run_dir: RunDir) -> slow.History:
    """The same of a run of which nothing is known yet, as it is now."""
    if next(iter(run_dir.signal_files()), None) is not None:
        return slow.FileHistory(run_dir)
    reading = read_run(run_dir)
    return slow.TableHistory(table_of_facts(reading.facts, run_dir.read_run(), _STEPS_OF_LOGS))
