"""What do the ends of the ranks' files say of the run and of this one rank?

Of the rank that is asked about some hundred lines, and what its attempt began with; of all others a dozen
lines each, which is enough to know how far the run is.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any, NamedTuple

from train_ledger.config import Config
from train_ledger.facts import Event, Fact
from train_ledger.ledger import Fold, RankState, RunState
from train_ledger.ops.ends import Closely, facts_before
from train_ledger.ops.observing import observe
from train_ledger.ops.rank.outputs import ranks_of_logs
from train_ledger.ops.rank.records import Where
from train_ledger.run_dir import RunDir, parsed_json
from train_ledger.slow.table.files import RankFiles
from train_ledger.slow.table.identities import identities_of
from train_ledger.sources import Liveness
from train_ledger.sources.hardware.hardware_files import HardwareFiles

__all__ = ["Seen", "look"]

_EACH_BYTES = 3 << 10
_OWN_BYTES = 192 << 10
_HARDWARE_BYTES = 1 << 20
_LINES_BYTES = 32 << 10
_SHOWN_LINES = 6


class Seen(NamedTuple):
    """The run as known, and of the rank where it runs and its last lines; `ranks` are all that are known of.

    `not_read` is what was not read or not believed, in words.
    """

    state: RunState
    where: Where
    lines: tuple[str, ...]
    ranks: frozenset[int]
    not_read: tuple[str, ...] = ()


def look(run_dir: RunDir, config: Config, rank: int, at: float | None) -> Seen:
    """The run and the rank as known at `at` (unix s; None: now).

    Raises RunDirError where run.json cannot be used.
    """
    run = run_dir.read_run()
    listed = identities_of(run_dir)
    known = {number for number, _ in run_dir.signal_files()}
    if not known:  # its logs alone tell of it
        state, not_read = observe(run_dir, config, at)
        named = {number for number, it in state.ranks.items() if not it.speaks_for_all}
        return Seen(
            state,
            _where(state, rank, listed),
            (),
            frozenset(named | listed.keys() | ranks_of_logs(run_dir)),
            not_read,
        )
    facts = facts_before(run_dir, math.inf if at is None else at, 0, _closely(rank))
    fold = Fold(run_dir.name_in(run), config, run)
    leads_s = {} if at is None else _leads(facts, config, run, rank)
    _tell(fold, facts, leads_s, at)
    t = fold.carried(time.time()) if at is None else at
    state = fold.state(t)
    where = _where(state, rank, {**listed, **_started(facts, state, rank, listed)})
    _tell_hardware(fold, run_dir, where.host, None if at is None else at + leads_s.get(rank, 0.0))
    if at is None:
        _look_at_process(fold, state, rank, listed)
    own_t = math.inf if at is None else at + leads_s.get(rank, 0.0)
    lines = _last_lines(run_dir, rank, own_t)
    return Seen(fold.state(t), where, lines, frozenset(known | listed.keys()))


def _closely(rank: int) -> Closely:
    return Closely(each_bytes=_EACH_BYTES, head_bytes=0, ranks=(rank,), own_bytes=_OWN_BYTES)


def _leads(facts: list[Fact], config: Config, run: dict[str, Any], rank: int) -> dict[int, float]:
    """Seconds by which each rank's own times are ahead of the clock that answers are read on."""
    trial = Fold("", config, run)
    trial.add_all(facts)
    leads_s = trial.leads_s()
    return {**leads_s, rank: leads_s.get(rank, 0.0) - trial.clock_of(rank)[0]}


def _tell(fold: Fold, facts: list[Fact], leads_s: dict[int, float], at: float | None) -> None:
    for fact in facts:
        if at is None or fact.t is None or fact.t - leads_s.get(fact.rank or 0, 0.0) <= at:
            fold.add(fact)


def _tell_hardware(fold: Fold, run_dir: RunDir, host: str | None, until_t: float | None) -> None:
    """What was recorded of the rank's own host; `until_t` is on that host's clock."""
    if host is None:
        return
    files = HardwareFiles(run_dir, [host])
    files.begin_at_tail(_HARDWARE_BYTES)
    try:
        while told := files.poll():
            for fact in told:
                if until_t is None or fact.t is None or fact.t <= until_t:
                    fold.add_hardware(fact)
    finally:
        files.close()


def _look_at_process(fold: Fold, state: RunState, rank: int, listed: dict[int, dict[str, Any]]) -> None:
    """Whether its process is there, where this is its host: beside those of the ranks that run there, too."""
    own = state.ranks.get(rank)
    if own is None or own.host is None:
        return
    beside = [
        RankState(number, own.attempt, host=own.host, pid=_whole(it.get("pid")))
        for number, it in listed.items()
        if number != rank and it.get("host") == own.host and it.get("attempt") == own.attempt
    ]
    fold.add_all(it for it in Liveness().poll([*beside, own], state.t) if it.rank == rank)


def _started(
    facts: list[Fact], state: RunState, rank: int, listed: dict[int, dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    """What ranks.jsonl says of the rank, and over it what the run_start of its attempt says."""
    starts = [it for it in facts if isinstance(it, Event) and it.rank == rank and it.name == "run_start"]
    own = [it for it in starts if it.attempt == state.attempt]
    if not own:
        return {}
    return {rank: {**listed.get(rank, {}), **own[-1].details, "attempt": own[-1].attempt}}


def _where(state: RunState, rank: int, listed: dict[int, dict[str, Any]]) -> Where:
    own, told = state.ranks.get(rank), listed.get(rank, {})
    if own is not None and told.get("attempt") != own.attempt:  # a restart may have put it elsewhere
        told = {key: value for key, value in told.items() if told.get("host") == own.host}
    if own is None or own.speaks_for_all:
        own = None
    return Where(
        host=(own and own.host) or _word(told.get("host")),
        local_rank=_whole(told.get("local_rank")),
        gpu=own.gpu if own and own.gpu is not None else _whole(told.get("gpu")),
        uuid=(own and own.uuid) or _word(told.get("uuid")),
        pci=(own and own.pci) or _word(told.get("pci")),
        pid=own.pid if own and own.pid is not None else _whole(told.get("pid")),
        rack=_word(told.get("rack")),
        switch_port=_word(told.get("switch_port")),
    )


def _word(value: object) -> str | None:
    """As somebody may have written a rack or a port: a name, or a number."""
    is_one = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value)[:200] if is_one and str(value) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _last_lines(run_dir: RunDir, rank: int, until_t: float) -> tuple[str, ...]:
    """The last lines that it wrote, as they are; `until_t` is by its own clock."""
    paths = sorted((path for number, path in run_dir.signal_files() if number == rank), key=_age)
    try:
        with RankFiles(paths) as files:
            end = files.whole_end()
            if not math.isinf(until_t):
                end = min(end, files.end_before(lambda line: None if line.t is None else line.t > until_t))
            text = files.read(files.line_start(max(0, end - _LINES_BYTES)), end)
    except OSError:
        return ()
    told = [line.decode("utf-8", "replace") for line in text.splitlines() if line.strip()]
    if not math.isinf(until_t):
        told = [line for line in told if _t_of(line) <= until_t]
    return tuple(told[-_SHOWN_LINES:])


def _t_of(line: str) -> float:
    try:
        told = parsed_json(line)
    except ValueError:
        return math.inf
    t = told.get("t") if isinstance(told, dict) else None
    return float(t) if isinstance(t, int | float) and abs(t) < 1e11 else math.inf


def _age(path: os.PathLike[str]) -> int:
    last = os.fspath(path).rpartition(".")[2]
    return -int(last) if last.isdecimal() else 0
