"""What do signals, logs and the kernels of the hosts say of the time of an incident?

Times are on the run's clock: what the steps that all ranks share show of a host's clock is taken off. A day's
logs of many gigabytes are left to `train-ledger read`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from train_ledger.config import Xid
from train_ledger.facts import Fact, Step
from train_ledger.ledger import Dated
from train_ledger.ops.evidence.of_logs import logs_of_run
from train_ledger.ops.postmortem.moment import Moment
from train_ledger.ops.postmortem.places import key_of, places_of
from train_ledger.ops.postmortem.statements import Statements
from train_ledger.ops.postmortem.stretch import Signals, Window, signals_in
from train_ledger.run_dir import RunDir
from train_ledger.sources import read_facts

__all__ = ["Witnesses", "witnesses_of"]

_LOGS_AT_MOST_BYTES = 1 << 30
_MOST_TOLD = 60
_SAME_MOMENT_S = 1.0


@dataclass(frozen=True, slots=True)
class Witnesses:
    """What was told of the window, and what was not read.

    `last_steps` are the last steps of the window's ranks before the run stood still.
    """

    moments: tuple[Moment, ...] = ()
    last_steps: tuple[Moment, ...] = ()
    not_read: tuple[str, ...] = ()


def witnesses_of(run_dir: RunDir, window: Window, levels: Xid) -> Witnesses:
    """What is told of the window; `levels` are those of XIDs that the user set."""
    signals = signals_in(run_dir, window)
    paths, not_read = _readable(run_dir)
    told = [*signals.facts, *(_of_log(fact, signals) for fact in read_facts(paths))]
    inside = (it for it in told if window.holds(it.t))
    moments = Statements(run_dir.path, signals.leads, levels).told(inside)
    if more := len(moments) - _MOST_TOLD:
        not_read = (
            (*not_read, f"{more} more kinds of statements of logs and signals") if more > 0 else not_read
        )
    steps = _last_steps(run_dir, signals.facts, window)
    return Witnesses(tuple(moments[:_MOST_TOLD]), steps, (*signals.not_read, *not_read))


def _of_log(fact: Fact, signals: Signals) -> Dated:
    """A log's clock is that of its host, which its rank's signals may name where it does not itself."""
    if fact.host is None and fact.rank in signals.hosts:
        fact = replace(fact, host=signals.hosts[fact.rank])
    lead_s = signals.leads.get(fact.host, 0.0)
    is_dated = fact.t is not None and math.isfinite(fact.t)
    return Dated(fact, fact.t - lead_s if is_dated and fact.t is not None else None, lead_s)


def _readable(run_dir: RunDir) -> tuple[list[Path], tuple[str, ...]]:
    paths = logs_of_run(run_dir)
    size = sum(sum(_sizes(path)) for path in paths)
    if size <= _LOGS_AT_MOST_BYTES:
        return paths, ()
    kernels = [path for path in paths if path.name.endswith(".kern.log")]
    return kernels, (f"logs of {size / 1e9:.1f} GB; `train-ledger read` tells what stands in them",)


def _sizes(path: Path) -> Iterator[int]:
    if path.is_file():
        yield path.stat().st_size
    for folder, _, names in os.walk(path):
        for name in names:
            file = Path(folder, name)
            yield file.lstat().st_size if file.is_file() else 0


def _last_steps(run_dir: RunDir, facts: Iterable[Dated], window: Window) -> tuple[Moment, ...]:
    until_t = window.stood_t + _SAME_MOMENT_S
    last: dict[int | None, Dated] = {}
    for it in facts:
        is_own = isinstance(it.fact, Step) and it.fact.rank in window.ranks
        if is_own and it.t is not None and it.t <= until_t:
            last[it.fact.rank] = it
    keys = {rank: key_of(it.fact) for rank, it in last.items()}
    places = places_of(run_dir, (key for key in keys.values() if key is not None))
    return tuple(
        _last_step(it, places.get(key, "") if (key := keys[rank]) else "") for rank, it in last.items()
    )


def _last_step(it: Dated, source: str) -> Moment:
    fact = it.fact
    text = f"rank {fact.rank}: its last step completed (step {fact.step})"
    return Moment(it.t, text, source, "the run's clock", host=fact.host, rank=fact.rank)
