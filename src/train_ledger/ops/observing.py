"""What is known of a run now, or was at a moment in the past?

Of signal files that are very long the first lines and the last ones are read: what is wrong now stands there,
and how long the answer takes does not grow with the run. What a keeper knew when it last wrote it down is
taken up.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

from train_ledger.config import Config
from train_ledger.facts import Fact, Fault, HardwareReading
from train_ledger.fields import LARGEST_WORLD_SIZE, read_world_size
from train_ledger.ledger import Fold, Memory, MemoryUnusableError, RunState, known_with_hardware
from train_ledger.ops.ends import ends_after, facts_before
from train_ledger.run_dir import RunDir
from train_ledger.slow.table import Until, read_table
from train_ledger.sources import RunFacts, read_run

__all__ = ["WHOLE_BYTES", "Observed", "is_long", "observe", "read_state"]

WHOLE_BYTES = 96 << 20
"""Two seconds' work. Of a thousand ranks it is two hundred lines of each, of eight thirty thousand."""

_LOGS_WHOLE_BYTES = 64 << 20
_RANK_BYTES = 96 << 10
_MOST_BYTES = 512 << 20
_PAST_BYTES = 8 << 20
"""Less, since each line of the past is looked at to know whether it was written by then."""

_HARDWARE_BYTES = 64 << 20
_RANKS_OF_A_CLOCK = 2
_ANY_STEP = 1 << 60
_KEEPER_MEMORY = "keeper.memory"


class Observed(NamedTuple):
    """The state of a run, and in words what of its files was not read or not believed."""

    state: RunState
    not_read: tuple[str, ...]


class _Folded(NamedTuple):
    fold: Fold
    not_read: tuple[str, ...]
    by_logs: bool
    left_out_bytes: int = 0


def observe(run_dir: RunDir, config: Config, at: float | None = None) -> Observed:
    """The run as known at `at` (None: now), folded from what its ranks wrote, else from its logs.

    What was recorded of its hosts' hardware is folded beside it. Raises RunDirError where run.json cannot be
    used.
    """
    run = run_dir.read_run()
    if at is not None and is_long(run_dir) and ends_after(run_dir, at):
        folded = _long_past(run_dir, config, run, at)
    else:
        folded = _newest(run_dir, config, run)
        if at is not None and _newest_t(folded.fold, at) > at:
            has_gap = folded.left_out_bytes > 0 and not folded.by_logs
            folded = _long_past(run_dir, config, run, at) if has_gap else _past(run_dir, config, run, at)
    state = folded.fold.state(folded.fold.carried(time.time()) if at is None else at)
    if folded.left_out_bytes and not folded.by_logs:
        # How much of all time was of use stands in the lines between, too, so that it is not known.
        state = replace(_with_step_once_reached(run_dir, state), productive=None)
    return Observed(state, tuple(_not_read(run, folded)))


def read_state(run_dir: RunDir, config: Config, at: float | None = None) -> RunState:
    """The state alone of `observe`."""
    return observe(run_dir, config, at).state


def _with_step_once_reached(run_dir: RunDir, state: RunState) -> RunState:
    """A restarted run recovers until it has passed the step that an earlier attempt came to."""
    if state.state != "running" or not state.attempt or state.step is None or not state.ranks:
        return state
    end = Until(state.attempt - 1, _ANY_STEP)
    before = read_table(run_dir, 1, until=end, ranks=[min(state.ranks)])
    reached = int(before.steps[-1]) if len(before.steps) and before.attempt < state.attempt else 0
    return replace(state, state="recovering") if reached > state.step else state


def _newest(run_dir: RunDir, config: Config, run: Mapping[str, Any]) -> _Folded:
    """All that there is; of very long files their ends."""
    fold = Fold(run_dir.name_in(run), config, run)
    files = RunFacts(run_dir)
    try:
        memory = Memory(run_dir.ledger / _KEEPER_MEMORY, run, None)
        try:
            goes_on = memory.recall(fold, files)
        except MemoryUnusableError:  # of another version, or damaged: the files say it all themselves
            goes_on = False
        files.begin_logs_at_tail(_LOGS_WHOLE_BYTES)
        if not goes_on:
            files.begin_at_tail(_whole_bytes(run_dir))
        files.fold_into(fold)
        while not files.caught_up:
            files.fold_into(fold)
        files.give_up_tails()
        left_out = () if goes_on else files.left_out_in_words
        by_logs = files.by_logs and files.files > 0
        return _Folded(fold, (*files.not_read, *left_out), by_logs, files.left_out_bytes)
    finally:
        files.close()


def _whole_bytes(run_dir: RunDir) -> int:
    """So much that of each rank the hundred lines are read in which a loss that was not finite counts."""
    files = sum(1 for _ in run_dir.signal_files())
    return max(WHOLE_BYTES, min(files * _RANK_BYTES, _MOST_BYTES))


def _newest_t(fold: Fold, at: float) -> float:
    """When the last thing that was folded happened, on the run's clock."""
    state = fold.state(at)
    told = [it.heard_t for it in state.ranks.values()]
    told += [gpu.seen_t for gpu in state.gpus] + [port.seen_t for port in state.ports]
    told += [xid.last_t for it in state.gpus for xid in it.xids]
    return max((t for t in told if t is not None), default=0.0)


def _past(run_dir: RunDir, config: Config, run: Mapping[str, Any], at: float) -> _Folded:
    """What was known then, out of all that there is."""
    read = read_run(run_dir)
    fold = Fold(run_dir.name_in(run), config, run)
    facts, hardware = known_with_hardware(read.facts, read.hardware, at)
    fold.add_all(facts)
    for told in hardware:
        fold.add_hardware(told)
    return _Folded(fold, read.not_read, read.by_logs)


def _long_past(run_dir: RunDir, config: Config, run: Mapping[str, Any], at: float) -> _Folded:
    """What was known then, out of the lines before that moment.

    Each host's clock is taken as the last of these lines show it.
    """
    fold = Fold(run_dir.name_in(run), config, run)
    files = RunFacts(run_dir)
    try:
        files.begin_hardware_at_tail(_HARDWARE_BYTES)
        told: list[HardwareReading | Fault] = files.poll_hardware()
        while more := files.poll_hardware():
            told += more
    finally:
        files.close()
    told.sort(key=lambda it: -1.0 if it.t is None else it.t)
    facts = facts_before(run_dir, at, _PAST_BYTES)
    lead_s = _leads_s(facts, config, run)
    fold.add_all(it for it in facts if it.t is None or it.t - lead_s.get(_clock(it), 0.0) <= at)
    for it in told:
        if it.t is None or it.t - lead_s.get(it.host, 0.0) <= at:
            fold.add_hardware(it)
    return _Folded(fold, ("all but the last lines before that moment, and the first ones",), False, 1)


def _leads_s(facts: Sequence[Fact], config: Config, run: Mapping[str, Any]) -> dict[str | int | None, float]:
    """By how much each host's clock, or that of a rank whose host nobody tells, is ahead of rank 0's.

    A few ranks of each host tell it.
    """
    of_clock: dict[str | int | None, set[int]] = {}
    for fact in facts:
        ranks = of_clock.setdefault(_clock(fact), set())
        if len(ranks) < _RANKS_OF_A_CLOCK:
            ranks.add(fact.rank or 0)
    asked = set().union(*of_clock.values()) if of_clock else set()
    trial = Fold("", config, run)
    trial.add_all(it for it in facts if (it.rank or 0) in asked or not it.rank)
    leads_s, shifts_s = trial.leads_s(), trial.shifts_s()
    return {
        clock: median(leads_s.get(rank, 0.0) - shifts_s.get(rank, 0.0) for rank in ranks)
        for clock, ranks in of_clock.items()
    }


def _clock(fact: Fact) -> str | int | None:
    return fact.host if fact.host is not None else fact.rank or 0


def is_long(run_dir: RunDir) -> bool:
    """Whether its signals are more than is read whole."""
    size = 0
    for _, path in run_dir.signal_files():
        with contextlib.suppress(OSError):
            size += os.path.getsize(path)
    return size > _whole_bytes(run_dir)


def _not_read(run: Mapping[str, Any], folded: _Folded) -> Iterable[str]:
    if folded.not_read:
        yield f"{'logs' if folded.by_logs else 'signals'} not read: {', '.join(folded.not_read)}"
    if folded.by_logs:
        yield "signals: none were written, so that the logs alone tell of the run"
    world_size = run.get("world_size")
    if world_size is not None and read_world_size(world_size) is None:
        yield f"world_size of run.json: is no number of ranks (1 to {LARGEST_WORLD_SIZE}), ignored"
