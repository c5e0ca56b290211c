"""What do the rules have in common: how they speak of a run, and how PromQL says it?"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from train_ledger.dash.rule import Firing
from train_ledger.ledger.state import RunState
from train_ledger.render import harmless, ranks_in_words

__all__ = ["QUIET_AFTER_THE_END", "clock", "grew", "of_run", "ranks_told", "where"]


def clock(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%H:%M:%SZ")


def of_run(state: RunState, value: float, summary: str, since_t: float | None = None) -> list[Firing]:
    return [Firing({"run": state.run}, value, harmless(f"{state.run}: {summary}", longest=500), since_t)]


def where(state: RunState) -> str:
    step = "before the first step" if state.step is None else f"step {state.step}"
    return f"{step}, attempt {state.attempt}"


def ranks_told(ranks: Iterable[int]) -> str:
    return harmless(ranks_in_words(ranks), longest=120)


QUIET_AFTER_THE_END = "\nunless on (run) (run:train_run_finished:bool == 1)"


def grew(metric: str, window: str) -> str:
    """By how much a counter of the run grew within the window.

    Unlike `increase` this counts what a counter of a young run was born with; of an older run only what
    was added since it was first scraped is news.
    """
    now = f"max by (run) (last_over_time({metric}[{window}]))"
    return f"""{now}
- on (run) (
  max by (run) (last_over_time({metric}[{window}] offset {window}))
  or on (run) (
    max by (run) (min_over_time({metric}[{window}]))
    and on (run) run:train_run_age:seconds > {window}_s
  )
  or on (run) 0 * {now}
)"""
