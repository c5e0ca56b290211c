"""What do logs, kernels and the ranks' own signals tell of trouble, all of it in the order of time?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train_ledger.config import Xid
from train_ledger.facts import Event, Fault
from train_ledger.ledger import RunState
from train_ledger.ops.troubles.deaths import one_a_death
from train_ledger.ops.troubles.gone_on import without_saves_in_passing
from train_ledger.ops.troubles.logs_told import LogsTold, logs_told
from train_ledger.ops.troubles.order import came_all_the_same
from train_ledger.ops.troubles.owners import with_owners
from train_ledger.ops.troubles.signal_events import EventsTold, events_told
from train_ledger.ops.troubles.told import Told
from train_ledger.ops.troubles.trouble import Trouble, trouble_of
from train_ledger.ops.troubles.undated import with_latest_times
from train_ledger.run_dir import RunDir
from train_ledger.sources.hardware.hardware_files import HardwareFiles

__all__ = ["troubles_told"]

_MOST = 20_000
_ASKED = 32
_WORDS_OF_SIGNALS = frozenset({"exception", "signal", "ckpt_failed", "ckpt_saved"})


def troubles_told(
    run_dir: RunDir,
    state: RunState,
    overrides: Xid | None = None,
    *,
    until_t: float | None = None,
    only_now: bool = False,
) -> Told:
    """All troubles of the run that are told by `until_t` (unix seconds; None: by now).

    With `only_now` the signals of earlier attempts do not matter, so that few of their files are read.
    """
    logs = logs_told(run_dir, until_t)
    signals = _of_signals(run_dir, state, only_now=only_now)
    events = without_saves_in_passing(signals.events, state)
    told: list[Fault | Event] = [*logs.faults, *_of_kernels(run_dir), *events]
    troubles = (it for fault in told if (it := trouble_of(fault, overrides)) is not None)
    found = with_latest_times(troubles, run_dir)
    if until_t is not None:
        found = [it for it in found if it.t is None or it.t <= until_t]
    passed = frozenset(it.source for it in found if logs.went_on_after(it)) | came_all_the_same(found)
    deaths = one_a_death(it for it in found if it.source not in passed)
    return Told(
        tuple(sorted(with_owners(deaths, state), key=_when)[:_MOST]),
        tuple(_not_read(logs, signals)),
        over_t=max(logs.ended_t, default=None),
        last_step_t=logs.lived_t,
        last_start_t=max(logs.began_t, default=None),
        restarts_t=tuple(sorted(logs.restarts_t)),
        passed=passed,
        passed_ranks=frozenset(it.rank for it in found if it.source in passed and it.rank is not None),
    )


def _when(it: Trouble) -> float:
    return it.t if it.t is not None else float("inf")


def _not_read(logs: LogsTold, signals: EventsTold) -> Iterator[str]:
    if logs.left_out_bytes:
        yield f"logs: {logs.left_out_bytes / 1e6:,.0f} MB in the middle of long files"
    if signals.left_out_bytes:
        size = signals.left_out_bytes / 1e6
        yield f"signals: what ranks raised in earlier attempts, in {size:,.0f} MB of long files"


def _of_signals(run_dir: RunDir, state: RunState, *, only_now: bool) -> EventsTold:
    """What ranks wrote themselves; with `only_now` the files of a few, and of the others what is known."""
    if not only_now:
        return events_told(run_dir, _WORDS_OF_SIGNALS)
    ended = _ended(state)
    read = events_told(run_dir, _WORDS_OF_SIGNALS, {*ended[:_ASKED], min(state.ranks, default=0)})
    known = _of_state(run_dir, state, ended[_ASKED:])
    return read._replace(events=(*read.events, *known))


def _ended(state: RunState) -> list[int]:
    """Ranks that raised, or got a signal, the first in front."""
    own = [it for it in state.ranks.values() if it.exception is not None or it.signal is not None]
    own.sort(key=lambda it: (it.raised_t or it.signal_t or float("inf"), it.rank))
    return [] if state.by_logs else [it.rank for it in own]


def _of_state(run_dir: RunDir, state: RunState, ranks: Iterable[int]) -> Iterator[Event]:
    """What the state knows of ranks whose files are not looked into once more."""
    for rank in ranks:
        it = state.ranks[rank]
        source = f"signals/{run_dir.signals_of(rank).name}"
        if it.exception is not None and it.raised_t is not None:
            kind, _, message = it.exception.partition(": ")
            details = {"type": kind, "message": message}
            yield Event(it.raised_t, "exception", rank, it.step, it.attempt, it.host, source, details)
        if it.signal is not None and it.signal_t is not None:
            number = {"number": it.signal}
            yield Event(it.signal_t, "signal", rank, it.step, it.attempt, it.host, source, number)


def _of_kernels(run_dir: RunDir) -> list[Fault]:
    files = HardwareFiles(run_dir)
    files.begin_at_tail(1)  # readings are looked at elsewhere; lines of kernels are always read whole
    try:
        found = list(files.poll())
        while not files.caught_up:
            found += files.poll()
        return [it for it in found if isinstance(it, Fault)]
    finally:
        files.close()
