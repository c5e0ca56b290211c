"""Which signals arrive in a run directory, of whom, and when did each come last?

Of every rank the last lines of its attempt, and those with which the attempt began. A field counts as long as
one of these lines has it: many are written once in some steps.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from train_ledger.config import Config
from train_ledger.facts import Event, Fact, Step
from train_ledger.hang.dumps.dump_files import rank_of
from train_ledger.ledger import Fold, RunState
from train_ledger.ledger.hardware.places import host_key
from train_ledger.ops.coverage.beside import RUN_LOOKS, kernel_logs, written_t
from train_ledger.ops.coverage.records import Arrival
from train_ledger.ops.coverage.signals import SIGNALS, Signal
from train_ledger.ops.ends import Closely, facts_before
from train_ledger.run_dir import RunDir
from train_ledger.sources import read_run

__all__ = ["MENDED", "SAVES", "arrivals", "hosts_of"]

_WHOLE_BYTES = 12 << 20
_EACH_BYTES = 16 << 10
SAVES = frozenset({"ckpt_start", "ckpt_saved", "ckpt_failed"})
_FLIGHT = ("TORCH_FR_", "TORCH_NCCL_", "NCCL_ASYNC", "TORCH_INCLUDE", "TORCH_DISTRIBUTED")
MENDED = " was replaced by "
"""torchrun sets a value that would lose dumps, and `train_ledger.start` another one before torch reads it."""

_MISSING_SHOWN = 64


@dataclass(slots=True)
class _Heard:
    """When each signal was heard last, by the rank; and what warns of the Flight Recorder, by the rank."""

    last_t: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    flight: dict[int, str] = field(default_factory=dict)

    def hear(self, name: str, rank: int, t: float) -> None:
        self.last_t[name][rank] = max(t, self.last_t[name].get(rank, -math.inf))


def arrivals(run_dir: RunDir, config: Config, state: RunState, at: float | None) -> dict[str, Arrival]:
    """Of every signal in `SIGNALS` whether it arrives, as known at `at` (unix s; None: now)."""
    heard = _heard(_facts(run_dir, config, state, at), state)
    return {name: _arrival(signal, run_dir, state, heard, at) for name, signal in SIGNALS.items()}


def hosts_of(state: RunState) -> tuple[str, ...]:
    """The hosts of the ranks, as far as is known."""
    return tuple(sorted({it.host for it in state.ranks.values() if it.host and not it.speaks_for_all}))


def _facts(run_dir: RunDir, config: Config, state: RunState, at: float | None) -> list[Fact]:
    if state.by_logs:
        facts, leads_s = read_run(run_dir).facts, dict[int, float]()
    else:
        closely = Closely(each_bytes=_EACH_BYTES, ranks=state.ranks.keys(), own_bytes=_EACH_BYTES)
        facts = facts_before(run_dir, math.inf if at is None else at, _WHOLE_BYTES, closely)
        leads_s = _leads(facts, config, at)
    return [
        fact
        for fact in facts
        if fact.t is None or at is None or not fact.t - leads_s.get(fact.rank or 0, 0.0) > at
    ]


def _leads(facts: list[Fact], config: Config, at: float | None) -> dict[int, float]:
    if at is None:
        return {}
    trial = Fold("", config)
    trial.add_all(facts)
    return trial.leads_s()


def _heard(facts: Iterable[Fact], state: RunState) -> _Heard:
    heard = _Heard()
    for fact in facts:
        rank, t = fact.rank or 0, fact.t
        if t is None or (fact.attempt != state.attempt and not state.by_logs):
            continue
        if isinstance(fact, Step):
            heard.hear("steps", rank, t)
            for name in fact.values.keys() & SIGNALS.keys():
                heard.hear(name, rank, t)
        elif isinstance(fact, Event):
            _hear_event(heard, fact, rank, t)
    return heard


def _hear_event(heard: _Heard, fact: Event, rank: int, t: float) -> None:
    if fact.name == "run_start":
        heard.hear("starts", rank, t)
    elif fact.name in ("phase_start", "phase_end"):
        heard.hear("phases", rank, t)
    elif fact.name in SAVES:
        heard.hear("saves", rank, t)
    elif fact.name == "warning":
        about = str(fact.details.get("about", ""))
        message = str(fact.details.get("message", about))
        if (about == "start" or about.startswith(_FLIGHT)) and MENDED not in message:
            heard.flight[rank] = message


def _arrival(signal: Signal, run_dir: RunDir, state: RunState, heard: _Heard, at: float | None) -> Arrival:
    if signal.name == "dumps":
        return _dumps(run_dir, state, heard)
    if signal.name == "stacks":
        known = {rank: it.heard_t or state.t for rank, it in state.ranks.items() if it.pid is not None}
        return _of_ranks(known, state)
    if signal.name in ("processes", "logs", "parallelism"):
        return _once(RUN_LOOKS[signal.name](run_dir, at))
    if signal.of == "hosts":
        return _of_hosts(_by_host(signal, run_dir, state), state)
    told = heard.last_t.get(signal.name, {})
    if signal.name == "saves" and state.checkpoints.saved_t:
        told = {**told, 0: max(state.checkpoints.saved_t[-1], told.get(0, -math.inf))}
    return _of_ranks(told, state) if signal.of == "ranks" else _once(max(told.values(), default=None))


def _once(t: float | None) -> Arrival:
    return Arrival(0, 1) if t is None else Arrival(1, 1, t, t)


def _of_ranks(told: Mapping[int, float], state: RunState, why: str = "") -> Arrival:
    if any(it.speaks_for_all for it in state.ranks.values()):
        return _once(max(told.values(), default=None))
    wanted = {*range(state.world_size or 0), *state.ranks}
    have = {rank: t for rank, t in told.items() if rank in wanted}
    times = list(have.values())
    missing = sorted(wanted - have.keys())
    return Arrival(
        len(have),
        len(wanted),
        max(times, default=None),
        min(times, default=None),
        tuple(missing[:_MISSING_SHOWN]),
        why,
    )


def _dumps(run_dir: RunDir, state: RunState, heard: _Heard) -> Arrival:
    """The environment was set at the start, and nobody warns of it; or there are dumps of this attempt."""
    told = {rank: t for rank, t in heard.last_t.get("starts", {}).items() if rank not in heard.flight}
    folder = run_dir.comm_traces(state.attempt)
    for path in folder.iterdir() if folder.is_dir() else ():
        rank = rank_of(path.name)
        t = written_t(path)
        if rank is not None and t is not None:
            told[rank] = t
    return _of_ranks(told, state, next(iter(heard.flight.values()), ""))


def _by_host(signal: Signal, run_dir: RunDir, state: RunState) -> dict[str, float]:
    read: Iterable[tuple[str, float | None]]
    if signal.kind == "gpu":
        read = ((it.host, it.seen_t) for it in state.gpus if signal.name in it.values)
    elif signal.name == "ports":
        read = ((it.host, it.seen_t) for it in state.ports)
    else:
        read = kernel_logs(run_dir)
    found: dict[str, float] = {}
    for host, t in read:
        if t is not None:
            found[host_key(host)] = max(t, found.get(host_key(host), t))
    return found


def _of_hosts(told: Mapping[str, float], state: RunState) -> Arrival:
    hosts = {host_key(host): host for host in hosts_of(state)}
    have = [told[key] for key in hosts if key in told]
    missing = tuple(host for key, host in sorted(hosts.items()) if key not in told)
    return Arrival(
        len(have),
        max(1, len(hosts)),
        max(have, default=None),
        min(have, default=None),
        missing[:_MISSING_SHOWN],
    )
