"""What could be told of this run tonight, and what could not?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from train_ledger.answer import NextCommand
from train_ledger.config import Config
from train_ledger.ledger import RunState, has_gpus
from train_ledger.ops.coverage.arriving import arrivals, hosts_of
from train_ledger.ops.coverage.records import Arrival, CauseCoverage, Coverage, SignalCoverage
from train_ledger.ops.coverage.signals import SIGNALS
from train_ledger.ops.coverage.table import ROWS, Row
from train_ledger.ops.coverage.verdicts import verdicts_of
from train_ledger.ops.observing import observe
from train_ledger.run_dir import RunDir

__all__ = ["coverage"]

_LONG_AGO_S = 3600.0


def _of_run(text: str, path: str) -> str:
    """The advice with the run's own path in it: in Python as a string, in a shell as a word."""
    for quoted in ("'RUN'", '"RUN"'):
        text = text.replace(quoted, repr(path))
    return text.replace("RUN", shlex.quote(path))


def coverage(run_dir: RunDir, config: Config, *, at: float | None = None) -> Coverage:
    """Which causes could be told by what arrives, as known at `at` (unix seconds; None: now).

    Raises RunDirError where run.json or the signals cannot be used.
    """
    run = run_dir.read_run()
    state, not_read = observe(run_dir, config, at)
    arriving = arrivals(run_dir, config, state, at)
    gpus = has_gpus(run, state.ranks.values())
    causes = tuple(_of_cause(row, arriving, _not_needed(row, run, state), gpus=gpus) for row in ROWS)
    signals = tuple(_of_signals(run_dir, arriving, causes))
    newest_t = max((it.newest_t for it in arriving.values() if it.newest_t is not None), default=None)
    heard_t = max((it.heard_t for it in state.ranks.values() if it.heard_t is not None), default=None)
    is_old = heard_t is None or (state.t - heard_t > _LONG_AGO_S and state.state != "finished")
    return Coverage(
        run=state.run,
        t=state.t,
        state=state.state,
        ranks=len(state.ranks),
        world_size=state.world_size,
        hosts=hosts_of(state),
        verdicts=tuple(verdicts_of(state, causes, signals, newest_t, heard_t)),
        causes=causes,
        signals=signals,
        not_observed=not_read,
        next=tuple(_next(run_dir, signals)),
        arrives=not is_old,
    )


def _not_needed(row: Row, run: Mapping[str, Any], state: RunState) -> str:
    """Why the run cannot have this cause; "" where it can, or where that is not known."""
    if not state.ranks:
        return ""
    if row.unless == "no GPUs" and not has_gpus(run, state.ranks.values()):
        return "its ranks have no GPU"
    if row.unless == "one rank" and state.world_size == 1:
        return "it has one rank"
    if row.unless == "one host" and len(hosts_of(state)) == 1 and len(state.ranks) == state.world_size:
        return "it runs on one host"
    layout = run.get("parallelism")
    stages = layout.get("pp") if isinstance(layout, Mapping) else None
    return "it has one stage" if row.unless == "one stage" and stages == 1 else ""


def _of_cause(row: Row, arriving: Mapping[str, Arrival], not_needed: str, *, gpus: bool) -> CauseCoverage:
    if not_needed:
        return CauseCoverage(row.cause, "not_needed", why=not_needed)
    needs = [group for group in row.needs if gpus or not all(map(_is_of_gpus, group))]
    by = tuple(dict.fromkeys(name for group in needs for name in group if arriving[name].comes))
    nowhere = [group for group in needs if not any(arriving[name].comes for name in group)]
    in_parts = [group for group in needs if not any(arriving[name].is_whole for name in group)]
    if nowhere:
        return CauseCoverage(row.cause, "no", by, tuple(nowhere))
    return CauseCoverage(row.cause, "partly" if in_parts else "yes", by, tuple(in_parts))


def _is_of_gpus(name: str) -> bool:
    """Whether ranks without a GPU can do without it."""
    return SIGNALS[name].kind == "gpu" or name == "kernel log"


def _of_signals(
    run_dir: RunDir, arriving: Mapping[str, Arrival], causes: tuple[CauseCoverage, ...]
) -> Iterator[SignalCoverage]:
    """Without those that only causes need which the run cannot have."""
    needless = {it.cause for it in causes if it.told == "not_needed"}
    for name, signal in SIGNALS.items():
        rest = [row.cause for row in ROWS if any(name in group for group in row.needs)]
        resting = tuple(cause for cause in rest if cause not in needless)
        if resting:
            get = _of_run(signal.get, str(run_dir.path))
            yield SignalCoverage(name, signal.what, arriving[name], resting, get)


def _next(run_dir: RunDir, signals: tuple[SignalCoverage, ...]) -> Iterator[NextCommand]:
    here = shlex.quote(str(run_dir.path))
    missing = {it.name for it in signals if not it.arrival.is_whole}
    hosts = {it.name for it in signals if SIGNALS[it.name].of == "hosts"}
    if "processes" in missing:
        yield NextCommand("a keeper, which looks at processes and pages", f"train-ledger watch {here}")
    if missing & hosts:
        yield NextCommand(
            "on every node: its GPUs, its ports and its kernel log, beside the run",
            f"train-ledger export {here} --record-hardware",
        )
