"""What do the rules have in common: how they speak of a run, and how PromQL says it?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime

from train_ledger.dash.conditions import restarts_since
from train_ledger.dash.rule import Firing
from train_ledger.ledger.state import RunState
from train_ledger.render import harmless, ranks_in_words

__all__ = [
    "AWAKE",
    "QUIET_AFTER_THE_END",
    "clock",
    "grew",
    "of_run",
    "place_of_run",
    "place_of_run_promql",
    "ranks_told",
    "where",
]


def clock(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%H:%M:%SZ")


def of_run(state: RunState, value: float, summary: str, since_t: float | None = None) -> list[Firing]:
    return [Firing({"run": state.run}, value, harmless(f"{state.run}: {summary}", longest=500), since_t)]


def where(state: RunState) -> str:
    step = "before the first step" if state.step is None else f"step {state.step}"
    return f"{step}, attempt {state.attempt}"


def place_of_run(state: RunState) -> str:
    """Where the run stands, to be put behind a summary; the embedded twin of `place_of_run_promql`.

    >>> place_of_run(RunState("r42", t=0.0, step=51300, attempt=1))
    ', step 51300, attempt 1'
    """
    step = ", before the first step" if state.step is None else f", step {state.step}"
    count = restarts_since(state, -math.inf)
    restart = f", restart under way (no. {count})" if state.state == "restarting" else ""
    return f"{step}, attempt {state.attempt}{restart}"


def place_of_run_promql() -> str:
    """The same as a Go template, of which each part is silent where its recording is absent."""
    return (
        _number_of("run:train_step:last{run=%q}", ", step %.0f")
        + _number_of("run:train_restart:count{run=%q}", ", attempt %.0f")
        + _number_of(
            "run:train_restart:count{run=%q} and on (run) run:train_restarting:bool == 1",
            ", restart under way (no. %.0f)",
        )
    )


def _number_of(query: str, text: str) -> str:
    told = f'{{{{ . | first | value | printf "{text}" }}}}'
    return f'{{{{ with printf "{query}" $labels.run | query }}}}{told}{{{{ end }}}}'


def ranks_told(ranks: Iterable[int]) -> str:
    return harmless(ranks_in_words(ranks), longest=120)


AWAKE = """
and on () (count_over_time(train:judge_awake:bool[1m]) * $evaluation_interval_s >= 15)"""
"""After a pause of Prometheus itself everything seems old until it was scraped again."""

QUIET_AFTER_THE_END = "\nunless on (run) (run:train_run_finished:bool == 1)"


def grew(metric: str, window: str) -> str:
    """By how much a counter of the run grew within the window.

    Unlike `increase` this counts what a counter of a young run was born with; of an older run only what
    was added since it was first scraped is news. One that fell counts anew: another run has its name now.
    """
    now = f"max by (run) (last_over_time({metric}[{window}]))"
    return f"""{now}
- on (run) (
  max by (run) (last_over_time({metric}[{window}] offset {window})) <= on (run) {now}
  or on (run) (
    max by (run) (min_over_time({metric}[{window}]))
    and on (run) run:train_run_age:seconds > {window}_s
  )
  or on (run) 0 * {now}
)"""
