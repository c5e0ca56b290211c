"""What is known of a run now, or was at a moment in the past?

Of signal files that are very long the first lines and the last ones are read: what is wrong now stands there,
and how long the answer takes does not grow with the run. What a keeper knew when it last wrote it down is
taken up.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from train_ledger.config import Config
from train_ledger.fields import LARGEST_WORLD_SIZE, read_world_size
from train_ledger.ledger import Fold, Memory, MemoryUnusableError, RunState, known_with_hardware
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunFacts, read_run

__all__ = ["WHOLE_BYTES", "Observed", "observe", "read_state"]

WHOLE_BYTES = 96 << 20
"""Two seconds' work. Of a thousand ranks it is two hundred lines of each, of eight thirty thousand."""

_LOGS_WHOLE_BYTES = 64 << 20
_KEEPER_MEMORY = "keeper.memory"


class Observed(NamedTuple):
    """The state of a run, and in words what of its files was not read or not believed."""

    state: RunState
    not_read: tuple[str, ...]


class _Folded(NamedTuple):
    fold: Fold
    not_read: tuple[str, ...]
    by_logs: bool


def observe(run_dir: RunDir, config: Config, at: float | None = None) -> Observed:
    """The run as known at `at` (None: now), folded from what its ranks wrote, else from its logs.

    What was recorded of its hosts' hardware is folded beside it. Raises RunDirError where run.json cannot be
    used.
    """
    run = run_dir.read_run()
    folded = _newest(run_dir, config, run)
    if at is not None and _newest_t(folded.fold, at) > at:
        folded = _past(run_dir, config, run, at)
    t = folded.fold.carried(time.time()) if at is None else at
    return Observed(folded.fold.state(t), tuple(_not_read(run, folded)))


def read_state(run_dir: RunDir, config: Config, at: float | None = None) -> RunState:
    """The state alone of `observe`."""
    return observe(run_dir, config, at).state


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
            files.begin_at_tail(WHOLE_BYTES)
        files.fold_into(fold)
        while not files.caught_up:
            files.fold_into(fold)
        files.give_up_tails()
        left_out = () if goes_on else files.left_out_in_words
        return _Folded(fold, (*files.not_read, *left_out), files.by_logs and files.files > 0)
    finally:
        files.close()


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


def _not_read(run: Mapping[str, Any], folded: _Folded) -> Iterable[str]:
    if folded.not_read:
        yield f"{'logs' if folded.by_logs else 'signals'} not read: {', '.join(folded.not_read)}"
    if folded.by_logs:
        yield "signals: none were written, so that the logs alone tell of the run"
    world_size = run.get("world_size")
    if world_size is not None and read_world_size(world_size) is None:
        yield f"world_size of run.json: is no number of ranks (1 to {LARGEST_WORLD_SIZE}), ignored"
