"""What does the keeper's journal say of a run that fresh eyes cannot judge?

Who followed a log as it was written knows when each line came; who reads it afterwards, and its lines carry
no time, knows only when the last one did. A stall that the keeper has seen, and that nothing has been written
since, still holds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from train_ledger.config import Config
from train_ledger.ledger import JournalError, RunState, journal
from train_ledger.ops.journal_values import Taker, moment
from train_ledger.render import harmless
from train_ledger.run_dir import RunDir

__all__ = ["Stall", "has_no_pace", "open_stall"]

_STALLED = "TrainingStepStalled"
_WRITTEN_SLACK_S = 5.0
"""The keeper's clock and that of the file may be apart."""


@dataclass(frozen=True, slots=True)
class Stall:
    """An open incident of a run that stands still: when it was paged, since when and after which step."""

    incident: str
    paged_t: float
    summary: str
    since_t: float | None = None
    since_step: int | None = None

    def in_words(self) -> str:
        at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.paged_t))
        return f"journal: incident {self.incident} is open, paged at {at}: {self.summary}"

    def taken_over(self, state: RunState) -> RunState:
        """The state as the keeper knows it: stalled, since when it saw the last step."""
        since_t = self.since_t if self.since_t is not None else state.last_step_t
        step = self.since_step if self.since_step is not None else state.step
        # The limit that was passed is the keeper's, and no longer than until it paged.
        limit_s = state.stall_threshold_s if since_t is None else max(0.0, self.paged_t - since_t)
        return replace(
            state,
            state="stalled",
            since_t=since_t,
            last_step_t=since_t,
            step=step,
            stall_threshold_s=min(limit_s, state.stall_threshold_s),
        )


def open_stall(run_dir: RunDir, state: RunState, at: float | None = None) -> Stall | None:
    """The stall that the journal holds open as known at `at` (unix seconds; None: now), if it still holds.

    None, too, where a rank was heard since: the keeper was gone by then, and the run went on.
    """
    try:
        entries = journal.read(run_dir.journal).entries
    except JournalError:
        return None
    found = _found(it for it in entries if at is None or (moment(it.get("t")) or 0.0) <= at)
    if found is None or (found.since_step is not None and (state.step or 0) > found.since_step):
        return None
    heard_t = max((it.heard_t or 0.0 for it in state.ranks.values()), default=0.0)
    return found if heard_t <= found.paged_t + _WRITTEN_SLACK_S else None


def _found(entries: Iterable[Mapping[str, Any]]) -> Stall | None:
    """The last one that was paged and neither resolved nor closed."""
    found: Stall | None = None
    taker = Taker()
    for entry in entries:
        kind, incident = entry.get("kind"), entry.get("incident")
        if kind == "alert_fired" and entry.get("alert") == _STALLED:
            summary = harmless(str(entry.get("summary")), longest=200)
            found = Stall(harmless(str(incident), longest=80), moment(entry.get("t")) or 0.0, summary)
        elif kind == "alert_resolved" and entry.get("alert") == _STALLED:
            found = None
        elif found and kind == "incident_opened" and _STALLED in str(entry.get("alert")):
            found = replace(found, incident=harmless(str(incident), longest=80))
        elif found and kind == "verdict" and (verdict := taker.diagnosis(entry)):
            found = replace(found, since_t=verdict.since_t, since_step=verdict.since_step)
    return found


def has_no_pace(state: RunState, config: Config) -> bool:
    """Whether a run by logs stands for longer than a step may take, and nothing says how long one is."""
    stands = state.stalled_for_s > config.alerts.stall_floor_s and state.phase is None
    return state.by_logs and state.last_step_t is not None and state.p50_step_time_s is None and stands
