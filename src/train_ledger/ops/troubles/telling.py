"""What do logs, kernels and the ranks' own signals tell of trouble, all of it in the order of time?

One death is told by several: the rank's traceback, its launcher, the kernel. It is one trouble here, with the
words of whoever knew most.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from train_ledger.config import Xid
from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.ledger import RunState
from train_ledger.ops.evidence.gpu_faults import on_one_host
from train_ledger.ops.evidence.outside import raised_as_ended
from train_ledger.ops.troubles.order import gave_up_t
from train_ledger.ops.troubles.signal_events import events_told
from train_ledger.ops.troubles.trouble import Trouble, trouble_of
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunLogs
from train_ledger.sources.hardware.hardware_files import HardwareFiles

__all__ = ["Told", "troubles_told"]

_LOGS_BYTES = 64 << 20
_MOST = 20_000
_TOGETHER_S = 60.0
_ASKED = 32
_PID = re.compile(r"\bpid(?:\(s\))?[ :]{1,3}(\d{1,9})\b")
_OF_TRAINING = re.compile(r"\((?:python|pt_|torchrun|deepspeed)")
_WENT_ON = 3
"""Without a rank the others come one step further at most; the third is a step of all."""

_LIVES = ("restart", "run_start")
_WORDS_OF_SIGNALS = frozenset({"exception", "signal", "ckpt_failed"})


@dataclass(frozen=True, slots=True)
class Told:
    """Troubles by their times, and what was not read, in words.

    `over_t` is when launchers last said that their ranks had ended, or watchdogs that they end theirs; None
    where none did. Nothing of the run is left to lose time then. `last_step_t` is when a log last told of a
    step or a start, `last_start_t` when one of them began; `restarts_t` are the times of its restarts.
    `passed` are places ("file:line") of exceptions behind which the same log tells of more steps.
    """

    troubles: tuple[Trouble, ...] = ()
    not_read: tuple[str, ...] = ()
    over_t: float | None = None
    last_step_t: float | None = None
    last_start_t: float | None = None
    restarts_t: tuple[float, ...] = ()
    passed: frozenset[str] = frozenset()

    def within(self, since_t: float | None, until_t: float | None = None) -> tuple[Trouble, ...]:
        """Those that can have happened in this time; those whose time is not known are among them."""
        return tuple(
            it
            for it in self.troubles
            if (it.t is None or since_t is None or it.t >= since_t)
            and (it.earliest_t is None or until_t is None or it.earliest_t <= until_t)
        )

    def places_beside(self, since_t: float | None) -> frozenset[str]:
        """Where exceptions stand ("file:line") that did not bring about what is so since `since_t` (unix s).

        They were raised before it, or when others had given up waiting.
        """
        end_t = gave_up_t(self.within(since_t))
        return self.passed | frozenset(
            it.source
            for it in self.troubles
            if it.kind in ("exception", "oom")
            and (_is_before(it.t, since_t) or _is_before(end_t, it.earliest_t))
        )


def _is_before(t: float | None, other_t: float | None) -> bool:
    return t is not None and other_t is not None and t < other_t


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
    logs = _of_logs(run_dir, until_t)
    faults, left_out = logs.faults, logs.left_out_bytes
    ended = _ended(state)
    asked = {*ended[:_ASKED], min(state.ranks, default=0)} if only_now else None
    signals = events_told(run_dir, _WORDS_OF_SIGNALS, asked)
    told: list[Fault | Event] = [*faults, *_of_kernels(run_dir), *signals.events]
    told += _of_state(run_dir, state, ended[_ASKED:]) if only_now else ()
    found = [it for fault in told if (it := trouble_of(fault, overrides)) is not None]
    if until_t is not None:
        found = [it for it in found if it.t is None or it.t <= until_t]
    passed = frozenset(it.source for it in found if logs.went_on_after(it))
    found = [it for it in found if it.source not in passed]
    found = [_placed(it, state) for it in _joined(found)]
    found = list(_as_known(found, state))
    found.sort(key=lambda it: it.t if it.t is not None else float("inf"))
    not_read = []
    if left_out:
        not_read.append(f"logs: {left_out / 1e6:,.0f} MB in the middle of long files")
    if signals.left_out_bytes:
        size = signals.left_out_bytes / 1e6
        not_read.append(f"signals: what ranks raised in earlier attempts, in {size:,.0f} MB of long files")
    return Told(
        tuple(found[:_MOST]),
        tuple(not_read),
        over_t=max(logs.ended_t, default=None),
        last_step_t=logs.lived_t,
        last_start_t=max(logs.began_t, default=None),
        restarts_t=tuple(sorted(logs.restarts_t)),
        passed=passed,
    )


@dataclass(slots=True)
class _Logs:
    """What stands in logs until `until_t`: faults, and the times (unix seconds) of ends, of the last life, of
    beginnings of logs and of restarts."""

    until_t: float | None
    faults: list[Fault] = field(default_factory=list)
    ended_t: list[float] = field(default_factory=list)
    lived_t: float | None = None
    began_t: list[float] = field(default_factory=list)
    restarts_t: list[float] = field(default_factory=list)
    left_out_bytes: int = 0
    steps_at: dict[str, deque[int]] = field(default_factory=dict)

    def add(self, fact: Fact) -> None:
        if fact.t is not None and self.until_t is not None and fact.t > self.until_t:
            return
        if isinstance(fact, Step):
            self._lived(fact.t)
            self._step(fact.source)
        elif isinstance(fact, Event):
            self._event(fact)
        elif len(self.faults) < _MOST:
            self.faults.append(fact)
            is_end = "exit_code" in fact.details or fact.fault == "watchdog_timeout"
            if is_end and fact.t is not None:
                earliest_t = fact.details.get("earliest_t")
                self.ended_t.append(fact.t if earliest_t is None else earliest_t)

    def _lived(self, t: float | None) -> None:
        if t is not None:
            self.lived_t = t if self.lived_t is None else max(self.lived_t, t)

    def _step(self, source: str) -> None:
        file, _, line = source.rpartition(":")
        if line.isdecimal():
            self.steps_at.setdefault(file, deque(maxlen=_WENT_ON)).append(int(line))

    def went_on_after(self, it: Trouble) -> bool:
        """Whether a log tells of some more steps behind an exception: nobody died of it."""
        file, _, line = it.source.rpartition(":")
        steps = self.steps_at.get(file) or [0]
        is_raised = it.kind in ("exception", "oom") and not it.said.startswith("ended with")
        return is_raised and line.isdecimal() and len(steps) == _WENT_ON and steps[0] > int(line)

    def _event(self, fact: Event) -> None:
        if fact.name in _LIVES:
            self._lived(fact.t)
        if fact.name == "log_start":
            self.began_t.append(fact.t)
        if fact.name == "restart":
            self.restarts_t.append(fact.t)


def _of_logs(run_dir: RunDir, until_t: float | None) -> _Logs:
    logs, found = RunLogs(run_dir), _Logs(until_t)
    logs.begin_at_tail(_LOGS_BYTES)
    try:
        while True:
            for fact in logs.poll():
                found.add(fact)
            if logs.caught_up:
                found.left_out_bytes = logs.left_out_bytes
                return found
    finally:
        logs.close()


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


def _joined(told: Iterable[Trouble]) -> Iterator[Trouble]:
    """One trouble a death: what a rank raised and what its launcher or the kernel says of its end are one."""
    deaths: dict[tuple[int, int], Trouble] = {}
    by_pid: dict[int, tuple[int, int]] = {}
    rest: list[Trouble] = []
    for it in told:
        if it.rank is None or it.kind in ("watchdog_timeout", "nccl_error", "checkpoint_failed", "xid"):
            rest.append(it)
            continue
        key = it.attempt, it.rank
        deaths[key] = _one(deaths[key], it) if key in deaths else it
        if it.pid is not None:
            by_pid[it.pid] = key
    of_helpers = _helpers(deaths.values())
    for it in rest:
        owner = by_pid.get(it.pid) if it.pid is not None and it.kind == "killed" else None
        if owner is None:
            yield _of_helper(it, of_helpers)
        else:
            deaths[owner] = _one(replace(it, rank=owner[1]), deaths[owner])
    yield from deaths.values()


def _helpers(deaths: Iterable[Trouble]) -> dict[int, Trouble]:
    """Processes of which ranks say that they lost them: those of their loaders."""
    return {int(number): it for it in deaths for number in _PID.findall(it.said)}


def _of_helper(it: Trouble, of_helpers: Mapping[int, Trouble]) -> Trouble:
    """A process that the kernel killed is the rank's that says so, if it is of its host."""
    owner = of_helpers.get(it.pid) if it.pid is not None and it.kind == "killed" else None
    if owner is None or not (it.host is None or owner.host is None or on_one_host(it.host, owner.host)):
        return it
    return replace(it, rank=owner.rank)


_TELLING = {"cause": 0, "sign": 1, "victim": 2, "outside": 3}


def _one(a: Trouble, b: Trouble) -> Trouble:
    """What says why stays, with what the other one knows besides; a status alone says the least."""
    first, second = sorted((a, b), key=_how_little)
    t = first.t
    if second.t is not None and (t is None or (first.earliest_t != t and second.t < t)):
        t = second.t
    weight = first.weight
    if second.weight == "victim" and first.weight == "sign":
        weight = "victim"
    return replace(
        first,
        weight=weight,
        t=t,
        earliest_t=t if first.earliest_t == first.t else first.earliest_t,
        host=first.host or second.host,
        pid=first.pid if first.pid is not None else second.pid,
        is_root=first.is_root or second.is_root,
    )


def _how_little(it: Trouble) -> tuple[bool, bool, int, bool, float]:
    is_status = it.said.startswith("ended with exit status")
    in_signals = it.source.startswith("signals/")
    is_bare = it.kind == "killed" and it.said.startswith("killed")
    t = it.t if it.t is not None else float("inf")
    return is_status, is_bare, _TELLING[it.weight], in_signals, t


def _placed(it: Trouble, state: RunState) -> Trouble:
    """With the rank and host that the run's own files know of."""
    if it.rank is None and it.host is not None and (it.pid is not None or it.pci is not None):
        there = [rank for rank in state.ranks.values() if on_one_host(it.host, rank.host)]
        if it.pci is not None:
            own = {rank.rank for rank in there if rank.pci and rank.pci.lower().startswith(it.pci)}
            own |= {
                rank
                for gpu in state.gpus
                if gpu.pci == it.pci and on_one_host(it.host, gpu.host)
                for rank in gpu.ranks
            }
        else:
            own = {rank.rank for rank in there if rank.pid == it.pid}
        if len(own) == 1:
            it = replace(it, rank=own.pop())
    if _is_strangers(it, state):
        it = replace(it, weight="sign")
    known = state.ranks.get(it.rank) if it.rank is not None else None
    is_told = known is not None and known.host not in (None, "localhost")
    return replace(it, host=known.host) if it.host is None and is_told and known else it


def _is_strangers(it: Trouble, state: RunState) -> bool:
    """Whether the kernel killed what is no rank, nor by its name may be one of which no number is known.

    Memory was short on that host, and that is all that it says.
    """
    if it.rank is not None or it.kind != "killed" or it.pid is None:
        return False
    there = [rank for rank in state.ranks.values() if on_one_host(it.host, rank.host)]
    are_known = bool(there) and all(rank.pid is not None for rank in there)
    return are_known or _OF_TRAINING.search(it.said) is None


def _as_known(found: Iterable[Trouble], state: RunState) -> Iterator[Trouble]:
    """Times of the current attempt are told on the run's clock; who raised as it was ended is a victim."""
    if state.by_logs:  # what is known of its ranks is what the logs told
        yield from found
        return
    as_ended = raised_as_ended(state)
    for it in found:
        rank = state.ranks.get(it.rank) if it.rank is not None else None
        is_now = rank is not None and it.kind in ("exception", "oom") and rank.raised_t is not None
        if is_now and rank and it.t is not None and abs((rank.raised_t or 0.0) - it.t) < _TOGETHER_S:
            it = replace(it, t=rank.raised_t, earliest_t=rank.raised_t)
            if it.rank in as_ended:
                it = replace(it, weight="victim")
        yield it
