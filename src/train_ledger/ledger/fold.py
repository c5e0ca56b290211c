"""What do all the facts of a run add up to?

Facts of one rank come in the order in which it wrote them; otherwise their order does not matter, so that
polls of any size, and files read one after the other, give the same state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from train_ledger.config import Config
from train_ledger.facts import Event, Fact, Fault, HardwareReading, Stretch
from train_ledger.fields import read_number, read_world_size
from train_ledger.ledger.attempts import Times
from train_ledger.ledger.hardware.hardware import HardwareFold
from train_ledger.ledger.hardware.standing import clocks_of
from train_ledger.ledger.limits import p50_step_s, stall_limit
from train_ledger.ledger.machine import with_state
from train_ledger.ledger.ranks import Ranks
from train_ledger.ledger.speakers import Speakers, of_no_place
from train_ledger.ledger.speed import Given, comparable, speed_of
from train_ledger.ledger.starts import Starts
from train_ledger.ledger.state import Attempt, GpuState, PortState, RunState
from train_ledger.ledger.step_clock import step_clock, step_tellers

__all__ = ["Fold"]


_ENTRY = 3
"""Steps after which a rank that goes on evenly does so: two that warm up, and one that goes back."""

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
        self._speakers = Speakers()
        self._starts = Starts()
        self._ranks = Ranks(self._alerts.effective_window_s)

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
        rank = self._ranks.of(number, self._alerts)
        if fact.rank is None:
            self._ranks.by_logs = rank.speaks_for_all = True
            fact = of_no_place(fact)
        for admitted in self._starts.admitted(number, fact):
            self._ranks.add(rank, admitted, self._alerts)

    def _end_all(self, end: Event) -> None:
        """The job has come to its end, whoever speaks for the ranks."""
        for rank in list(self._ranks.folds.values()):
            self.add(replace(end, rank=rank.rank, attempt=rank.attempt))

    def _rank_of(self, fact: Fact) -> int | None:
        spoke = self._speakers.ranks_speak
        number = self._speakers.rank_of(fact)
        if self._speakers.ranks_speak and not spoke:
            for known in self._ranks.folds.values():
                known.speaks_for_all = False
        return number

    def _settle(self) -> None:
        """Fold what waited for an attempt that most ranks have entered by now."""
        folds = self._ranks.folds
        for_all = any(rank.speaks_for_all for rank in folds.values())
        for fact in self._starts.settled(1 if for_all else max(len(folds), self._world_size or 0)):
            self._ranks.add(folds[fact.rank or 0], fact, self._alerts)

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
            if place <= _ENTRY and self._ranks.go_on(stretch.earlier[place:], last, self._alerts):
                break
        self.add(last)

    def add_all(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            self.add(fact)

    # -- what time it is

    def carried(self, t: float) -> float:
        """What rank 0's clock, which reads `t` now, would read had it not jumped since the run began.

        Where rank 0 is not among those that are folded – on another node – the clock of the first that is.
        """
        folds = self._ranks.folds
        first = folds.get(0) or (folds[min(folds)] if folds else None)
        return t + (first.clock.shift_s if first else 0.0)

    def clock_of(self, rank: int | None) -> tuple[float, float | None]:
        """Seconds by which a rank's clock is carried, and by which it then leads rank 0's (or None)."""
        known = self._ranks.folds.get(rank) if rank is not None else None
        return (0.0, None) if known is None else (known.clock.shift_s, self._ranks.clocks.lead_s(known.rank))

    def leads_s(self) -> dict[int, float]:
        """Seconds that each rank's host is ahead of rank 0's, by the newest steps that both completed."""
        self._settle()
        return self._ranks.leads_s()

    def shifts_s(self) -> dict[int, float]:
        """Seconds by which each rank's clock is carried over its jumps."""
        return {number: rank.clock.shift_s for number, rank in self._ranks.folds.items()}

    @property
    def heard_t(self) -> float | None:
        """The newest line of rank 0's host, on the carried clock; None before the first."""
        folds = self._ranks.folds
        zero = folds.get(0)
        here = [] if zero is None else [rank for rank in folds.values() if rank.host == zero.host]
        return max((rank.heard_t for rank in here if rank.heard_t is not None), default=None)

    # -- what comes out

    def state(self, t: float) -> RunState:
        """The run as known now, seen at `t` on rank 0's clock, carried over its jumps (see `carried`)."""
        leads = self.leads_s()
        ranks = self._ranks

        def on_zero(rank: int, t: float) -> float:
            return t - leads.get(rank, 0.0)

        run = self._without_speed(t, leads, on_zero)
        like = comparable(ranks.attempts.values(), run, self._world_size)
        speed = speed_of(run, self._given, ranks.trends, ranks.folds.values(), like, on_zero, self._alerts)
        return with_state(replace(run, speed=speed), self._alerts)

    def _without_speed(self, t: float, leads: Mapping[int, float], on_zero: Times) -> RunState:
        ranks, alerts = self._ranks, self._alerts
        attempts = self._shown_attempts(on_zero)
        current = attempts[-1].number if attempts else 0
        here = [(rank, leads[rank.rank]) for rank in ranks.folds.values() if rank.attempt == current]
        by_logs = not self._speakers.ranks_speak and ranks.by_logs
        tellers = step_tellers(here) if by_logs else here
        step, last_step_t = step_clock(tellers)
        began_t = attempts[-1].started_t if attempts else None
        limit = stall_limit(here, {rank for rank, _ in tellers}, step, last_step_t, began_t, alerts)
        folded = ranks.attempts.get(current)
        world_size = (folded.world_size if folded else None) or self._world_size
        gpus, ports = self._hardware_shown(world_size, leads)
        regresses = ranks.course.regressed(leads)
        return RunState(
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
            ranks={rank.rank: rank.shown(lead_s) for rank, lead_s in sorted(here, key=lambda it: it[0].rank)},
            attempts=attempts,
            checkpoints=ranks.saves.shown(current, on_zero),
            by_logs=by_logs,
            is_part=self._is_part,
            productive=ranks.course.productive(t, alerts.effective_window_s, ranks.attempts, leads),
            data_regress_total=regresses[0],
            data_regresses=regresses[1],
            recovery=ranks.course.recovered(),
            gpus=gpus,
            ports=ports,
            not_observed=self._hardware.not_observed(),
        )

    def _hardware_shown(
        self, world_size: int | None, leads: Mapping[int, float]
    ) -> tuple[tuple[GpuState, ...], tuple[PortState, ...]]:
        if self._hardware.is_empty:
            return (), ()
        folds = self._ranks.folds.values()
        host_clocks = clocks_of(folds, leads)
        places = self._ranks.standing.places(folds, world_size)
        gpus = self._hardware.gpus(places, host_clocks, self._config)
        return gpus, self._hardware.ports(host_clocks, self._alerts)

    def _shown_attempts(self, on_zero: Times) -> tuple[Attempt, ...]:
        folded = self._ranks.attempts
        shown = (folded[number].shown(on_zero) for number in sorted(folded))
        attempts = tuple(attempt for attempt in shown if attempt)
        if not attempts and self._started is not None:
            return (Attempt(0, self._started),)  # run.json was written, and no rank has said anything yet
        return attempts
