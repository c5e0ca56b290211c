"""What do all the facts of a run add up to?

Facts of one rank come in the order in which it wrote them; otherwise their order does not matter, so that
polls of any size, and files read one after the other, give the same state.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from train_ledger.config import Config
from train_ledger.facts import Event, Fact, Fault, HardwareReading, PlainStep, Step, Stretch
from train_ledger.fields import read_number, read_world_size
from train_ledger.ledger.attempts import AttemptFold
from train_ledger.ledger.course import Course
from train_ledger.ledger.hardware.hardware import HardwareFold
from train_ledger.ledger.hardware.standing import Standing, clocks_of
from train_ledger.ledger.host_clocks import HostClocks
from train_ledger.ledger.limits import p50_step_s, stall_limit
from train_ledger.ledger.machine import with_state
from train_ledger.ledger.rank import RankFold
from train_ledger.ledger.saves import SAVE_EVENTS, Saves
from train_ledger.ledger.speed import Given, comparable, speed_of
from train_ledger.ledger.starts import Starts
from train_ledger.ledger.state import Attempt, GpuState, PortState, RunState
from train_ledger.ledger.step_clock import step_clock, step_tellers
from train_ledger.ledger.trends.run_trends import RunTrends

__all__ = ["Fold"]


_ENTRY = 3
"""Steps after which a rank that goes on evenly does so: two that warm up, and one that goes back."""

_OF_ONE_PROCESS = frozenset({"exception", "signal", "process_gone", "process_seen", "warning"})
"""Events that say something of one process, so that they say nothing where it has no name."""

_PLACES = frozenset({"pid", "gpu", "uuid", "pci", "worker_server", "local_rank"})

_LATEST_T = 1e11
"""As in signal lines: a later time is no time."""


class Fold:
    """Folds facts into the state of a run.

    `add` takes facts of any rank and attempt; lines of an attempt that is over move nothing but what is known
    of that attempt, and those of one that has not begun wait for it (see `starts`). `state(t)` is the run as
    known now, at the moment `t` (unix seconds). `is_part`: only the ranks of some hosts are folded.
    """

    def __init__(
        self, run: str, config: Config, run_json: Mapping[str, Any] | None = None, *, is_part: bool = False
    ) -> None:
        self._alerts, self._config = config.alerts, config
        self._is_part = is_part
        self._hardware = HardwareFold()
        self.meet(run, run_json or {})
        self.forget()

    def meet(self, run: str, run_json: Mapping[str, Any]) -> None:
        """What the run is called and run.json says, which rank 0 may write when others follow already."""
        self.run = run
        self._world_size = read_world_size(run_json.get("world_size"))
        self._given = Given.read(run_json)
        started = read_number(run_json.get("started"))
        self._started = started if started is not None and abs(started) < _LATEST_T else None

    def forget(self) -> None:
        """Begin anew, as if no fact had been folded yet; what is known of the hardware stays."""
        self._ranks: dict[int, RankFold] = {}
        self._attempts: dict[int, AttemptFold] = {}
        self._started_ranks: set[int] = set()
        self._ranks_speak = False
        self._by_logs = False
        self._starts = Starts()
        self._saves = Saves()
        self._clocks = HostClocks()
        self._course = Course(self._alerts.effective_window_s)
        self._standing = Standing()
        self._leads: dict[int, float] = {}
        self._trends = RunTrends()

    def add(self, fact: Fact) -> None:
        """Fold one fact.

        A step or an event that names no rank, as a trainer's log tells it, stands under rank 0 and is of all
        ranks, unless they speak for themselves. What is of one process and names none is nobody's.
        """
        number = self._rank_of(fact)
        if number is None:
            if isinstance(fact, Event) and fact.name == "run_end" and fact.rank is None:
                self._end_all(fact)
            return
        rank = self._ranks.get(number)
        if rank is None:
            rank = self._ranks[number] = RankFold(number, self._alerts)
        if fact.rank is None:
            self._by_logs = rank.speaks_for_all = True
            fact = _of_no_place(fact)
        for admitted in self._starts.admitted(number, fact):
            self._fold(rank, admitted)

    def _end_all(self, end: Event) -> None:
        """The job has come to its end, whoever speaks for the ranks."""
        for rank in list(self._ranks.values()):
            self.add(replace(end, rank=rank.rank, attempt=rank.attempt))

    def _rank_of(self, fact: Fact) -> int | None:
        if fact.rank is not None:
            if not self._ranks_speak:
                self._hear_name(fact, fact.rank)
            return fact.rank
        if self._ranks_speak or isinstance(fact, Fault) or not math.isfinite(fact.t):
            return None
        return None if isinstance(fact, Event) and fact.name in _OF_ONE_PROCESS else 0

    def _hear_name(self, fact: Fact, rank: int) -> None:
        """A rank that says when it starts and which steps it takes speaks for itself, and so do all."""
        if isinstance(fact, Event) and fact.name == "run_start":
            self._started_ranks.add(rank)
        elif isinstance(fact, Step) and rank in self._started_ranks:
            self._ranks_speak = True
            for known in self._ranks.values():
                known.speaks_for_all = False

    def _settle(self) -> None:
        """Fold what waited for an attempt that most ranks have entered by now."""
        for_all = any(rank.speaks_for_all for rank in self._ranks.values())
        for fact in self._starts.settled(1 if for_all else max(len(self._ranks), self._world_size or 0)):
            self._fold(self._ranks[fact.rank or 0], fact)

    def _fold(self, rank: RankFold, fact: Fact) -> None:
        attempt_before, began_t, host = rank.attempt, rank.began_t, rank.host
        if isinstance(fact, Step):
            self._add_step(rank, fact)
        elif isinstance(fact, Event):
            self._add_event(rank, fact)
        elif isinstance(fact, Fault):
            rank.add_fault(fact)
        if rank.attempt != attempt_before and began_t is not None and host is not None:
            self._standing.left(host, began_t - rank.clock.shift_s)
        if rank.attempt != attempt_before and rank.began_t is not None:
            self._attempt(rank.attempt).heard(rank.rank, rank.began_t)

    def add_hardware(self, fact: HardwareReading | Fault) -> None:
        """Fold a look at a GPU or a port, or a kernel's line of a GPU; by their own hosts' clocks.

        Those of one host come in the order in which they were written, readings and lines of the kernel each
        by themselves; otherwise their order does not matter.
        """
        if isinstance(fact, Fault):
            self._hardware.add_fault(fact, self._config)
        else:
            self._hardware.add(fact, self._alerts)

    def add_stretch(self, stretch: Stretch) -> None:
        """Fold steps in a row, to the same state as one by one.

        The first one or two and the last are folded so, and those between them at once where nothing about
        their rank or their times asks for more.
        """
        place, last = 0, stretch.last
        while place < len(stretch.earlier):
            self.add(stretch.step_of(stretch.earlier[place]))
            place += 1
            if place <= _ENTRY and self._go_on(stretch.earlier[place:], last):
                break
        self.add(last)

    def _go_on(self, steps: Sequence[PlainStep], last: Step) -> bool:
        """Whether the steps before `last` could be folded at once, and so were."""
        rank = self._ranks.get(last.rank) if last.rank is not None else None
        if not steps or rank is None or rank.attempt != last.attempt:
            return False
        times = rank.carried(steps)
        if times is None or rank.step is None or rank.step_t is None:
            return False
        leads = self._course.follows(rank.rank, rank.attempt)
        if leads and not self._course.are_even(rank, times):
            return False
        before = (rank.step, rank.step_t)
        self._trends.add_all(rank.attempt, rank.rank, steps, times, before, self._alerts)
        lap = rank.go_on(steps, times, last)
        numbers = [step.step for step in steps]
        self._clocks.completed(rank.rank, lap, numbers, times)
        if leads:
            self._course.went_on(lap, steps, numbers, times, before[1])
        return True

    def add_all(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            self.add(fact)

    def _attempt(self, number: int) -> AttemptFold:
        attempt = self._attempts.get(number)
        if attempt is None:
            attempt = self._attempts[number] = AttemptFold(number)
        return attempt

    def _add_step(self, rank: RankFold, fact: Step) -> None:
        if fact.attempt < rank.attempt:
            self._attempt(fact.attempt).reached(rank.rank, fact.step)
            return
        before = self._course.before(rank) if self._course.follows(rank.rank, fact.attempt) else None
        lap = rank.add_step(fact)
        if lap is None or rank.step_t is None:
            return
        if before is not None:
            self._course.completed(rank, fact, lap, before)
        self._attempt(rank.attempt).completed(rank.rank, fact.step, rank.step_t)
        self._clocks.completed(rank.rank, lap, (fact.step,), (rank.step_t,))
        self._trends.add(rank.rank, fact, rank.step_t, rank.timing, self._alerts)

    def _add_event(self, rank: RankFold, fact: Event) -> None:
        rank.add_event(fact)
        self._by_logs = self._by_logs or fact.name == "log_start"
        if fact.name == "run_start":
            attempt = self._attempt(fact.attempt)
            attempt.world_size = attempt.world_size or read_world_size(fact.details.get("world_size"))
        elif fact.name == "run_end":
            self._course.ended(rank.rank, fact.attempt)
        elif fact.name in SAVE_EVENTS:
            self._saves.add(fact, rank.rank, fact.t + rank.clock.shift_s, rank.step)

    # -- what time it is

    def carried(self, t: float) -> float:
        """What rank 0's clock, which reads `t` now, would read had it not jumped since the run began.

        Where rank 0 is not among those that are folded – on another node – the clock of the first that is.
        """
        first = self._ranks.get(0) or (self._ranks[min(self._ranks)] if self._ranks else None)
        return t + (first.clock.shift_s if first else 0.0)

    def clock_of(self, rank: int | None) -> tuple[float, float | None]:
        """Seconds by which a rank's clock is carried, and by which it then leads rank 0's (or None)."""
        known = self._ranks.get(rank) if rank is not None else None
        return (0.0, None) if known is None else (known.clock.shift_s, self._clocks.lead_s(known.rank))

    def leads_s(self) -> dict[int, float]:
        """Seconds that each rank's host is ahead of rank 0's, by the newest steps that both completed."""
        self._settle()
        return self._clocks.leads_s({number: rank.host for number, rank in self._ranks.items()})

    def shifts_s(self) -> dict[int, float]:
        """Seconds by which each rank's clock is carried over its jumps."""
        return {number: rank.clock.shift_s for number, rank in self._ranks.items()}

    @property
    def heard_t(self) -> float | None:
        """The newest line of rank 0's host, on the carried clock; None before the first."""
        zero = self._ranks.get(0)
        here = [] if zero is None else [rank for rank in self._ranks.values() if rank.host == zero.host]
        return max((rank.heard_t for rank in here if rank.heard_t is not None), default=None)

    # -- what comes out

    def state(self, t: float) -> RunState:
        """The run as known now, seen at `t` on rank 0's clock, carried over its jumps (see `carried`)."""
        self._leads = self.leads_s()
        attempts = self._shown_attempts()
        current = attempts[-1].number if attempts else 0
        ranks = [(rank, self._leads[rank.rank]) for rank in self._ranks.values() if rank.attempt == current]
        by_logs = self._by_logs and not self._ranks_speak
        tellers = step_tellers(ranks) if by_logs else ranks
        step, last_step_t = step_clock(tellers)
        limit = stall_limit(ranks, {rank for rank, _ in tellers}, step, last_step_t, self._alerts)
        folded = self._attempts.get(current)
        world_size = (folded.world_size if folded else None) or self._world_size
        gpus, ports = self._hardware_shown(world_size)
        regresses = self._course.regressed(self._leads)
        run = RunState(
            run=self.run,
            t=t,
            world_size=world_size,
            attempt=current,
            step=step,
            last_step_t=last_step_t,
            p50_step_time_s=p50_step_s(rank for rank, _ in tellers),
            stall_threshold_s=limit.threshold_s,
            phase=limit.phase,
            phase_since_t=limit.phase_since_t,
            ranks={
                rank.rank: rank.shown(lead_s) for rank, lead_s in sorted(ranks, key=lambda it: it[0].rank)
            },
            attempts=attempts,
            checkpoints=self._saves.shown(current, self._on_zero),
            by_logs=by_logs,
            is_part=self._is_part,
            productive=self._course.productive(
                t, self._alerts.effective_window_s, self._attempts, self._leads
            ),
            data_regress_total=regresses[0],
            data_regresses=regresses[1],
            recovery=self._course.recovered(),
            gpus=gpus,
            ports=ports,
            not_observed=self._hardware.not_observed(),
        )
        like = comparable(self._attempts.values(), run, self._world_size)
        speed = speed_of(
            run, self._given, self._trends, self._ranks.values(), like, self._on_zero, self._alerts
        )
        return with_state(replace(run, speed=speed), self._alerts)

    def _hardware_shown(self, world_size: int | None) -> tuple[tuple[GpuState, ...], tuple[PortState, ...]]:
        if self._hardware.is_empty:
            return (), ()
        host_clocks = clocks_of(self._ranks.values(), self._leads)
        places = self._standing.places(self._ranks.values(), world_size)
        gpus = self._hardware.gpus(places, host_clocks, self._config)
        return gpus, self._hardware.ports(host_clocks, self._alerts)

    def _shown_attempts(self) -> tuple[Attempt, ...]:
        shown = (self._attempts[number].shown(self._on_zero) for number in sorted(self._attempts))
        attempts = tuple(attempt for attempt in shown if attempt)
        if not attempts and self._started is not None:
            return (Attempt(0, self._started),)  # run.json was written, and no rank has said anything yet
        return attempts

    def _on_zero(self, rank: int, t: float) -> float:
        return t - self._leads.get(rank, 0.0)


def _of_no_place(fact: Fact) -> Fact:
    """Without the process and the GPU of one rank, since it is told of all."""
    if not isinstance(fact, Event) or _PLACES.isdisjoint(fact.details):
        return fact
    details = {key: value for key, value in fact.details.items() if key not in _PLACES}
    return replace(fact, details=details)
