"""What did each rank and each card say, and when, without any reckoning?

One pass over a recording sorts it: completed steps, events and silence of each rank of each attempt, looks at
hardware, and what kernels reported. All times are those at which it became known, on the run's clock.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from train_ledger.dash.backtest.replay import Known
from train_ledger.facts import Event, Fault, HardwareReading, Step
from train_ledger.fields import read_number

__all__ = ["AttemptLines", "Completed", "Lines", "RankLines"]

_FOR_ALL = -1
"""Who speaks where a line names no rank."""

_ENDS = frozenset({"phase_end", "ckpt_saved", "ckpt_failed", "eval_end"})
_BEGINS = {"ckpt_start": "checkpoint_save", "eval_start": "evaluation"}


@dataclass(frozen=True, slots=True)
class Completed:
    """A step, when it became known, and when it was completed by the clock of who completed it."""

    t: float
    own_t: float
    step: int


@dataclass(slots=True)
class RankLines:
    """What a rank said in one attempt; `phases` are those that it opened (None: closed), by their times."""

    host: str | None = None
    heard: array[float] = field(default_factory=lambda: array("d"))
    step_t: array[float] = field(default_factory=lambda: array("d"))
    step_own_t: array[float] = field(default_factory=lambda: array("d"))
    steps: array[int] = field(default_factory=lambda: array("q"))
    mfu: list[tuple[float, float]] = field(default_factory=list)
    positions: dict[int, tuple[float, int]] = field(default_factory=dict)
    phases: list[tuple[float, str | None]] = field(default_factory=list)
    ended_t: float | None = None
    gone_t: float | None = None

    def completed(self) -> list[Completed]:
        return [*map(Completed, self.step_t, self.step_own_t, self.steps)]

    def phase_at(self, t: float) -> str | None:
        """The phase that it had opened last, unless it closed one since; start-up before its first step."""
        told = next((phase for at, phase in reversed(self.phases) if at <= t), None)
        begins = not self.step_t or self.step_t[0] > t
        return "start_up" if begins and told is None else told


@dataclass(slots=True)
class AttemptLines:
    """One start of the run; `world_size` is None where nobody said it."""

    number: int
    began_t: float
    ranks: dict[int, RankLines] = field(default_factory=dict)
    world_size: int | None = None

    def teller(self) -> RankLines:
        """The rank that told most steps, the lowest of those."""
        return max((rank for _, rank in sorted(self.ranks.items())), key=lambda it: len(it.steps))

    def ended_t(self) -> float | None:
        """When the last rank said that it ended; None unless all did."""
        ends = [rank.ended_t for rank in self.ranks.values()]
        return max((t for t in ends if t is not None), default=None) if None not in ends else None


class Lines:
    """All that was known up to `until_t`, sorted by who said it."""

    def __init__(self, known: Iterable[Known], until_t: float) -> None:
        self.until_t = until_t
        self.attempts: dict[int, AttemptLines] = {}
        self.starts: list[tuple[float, Event]] = []
        self.saves: list[tuple[float, Event]] = []
        self.readings: dict[str, list[tuple[float, HardwareReading]]] = {}
        self.kernel: list[tuple[float, Fault]] = []
        self.baselines: list[float] = []
        for it in known:
            if it.t > until_t:
                break
            self._take(it)
        self.attempts = dict(sorted(self.attempts.items()))

    def _take(self, known: Known) -> None:
        what = known.what
        if isinstance(what, HardwareReading):
            self.readings.setdefault(what.host, []).append((known.t, what))
        elif isinstance(what, Fault) and (known.of_host or what.rank is None):
            self.kernel.append((known.t, what))
        elif isinstance(what, Step | Event):
            rank = self._rank(known.t, what)
            rank.heard.append(known.t)
            if isinstance(what, Step):
                self._take_step(rank, known.t, what)
            else:
                self._take_event(rank, known.t, what)

    def _rank(self, t: float, what: Step | Event) -> RankLines:
        attempt = self.attempts.get(what.attempt)
        if attempt is None:
            attempt = self.attempts[what.attempt] = AttemptLines(what.attempt, t)
        number = _FOR_ALL if what.rank is None else what.rank
        rank = attempt.ranks.get(number)
        if rank is None:
            rank = attempt.ranks[number] = RankLines()
        rank.host = what.host or rank.host
        return rank

    def _take_step(self, rank: RankLines, t: float, step: Step) -> None:
        if not rank.steps or rank.steps[-1] != step.step:  # a second line of a step completes none
            rank.step_t.append(t)
            rank.step_own_t.append(step.t)
            rank.steps.append(step.step)
        values = step.values
        if "mfu" in values:
            rank.mfu.append((t, values["mfu"]))
        if "mfu_baseline" in values:
            self._take_baseline(values["mfu_baseline"])
        position = values.get("consumed_samples", values.get("consumed_tokens"))
        if position is not None and position == position // 1:
            rank.positions.setdefault(step.step, (t, int(position)))

    def _take_baseline(self, value: float) -> None:
        if not self.baselines or self.baselines[-1] != value:
            self.baselines.append(value)

    def _take_event(self, rank: RankLines, t: float, event: Event) -> None:
        name = event.name
        if name == "run_start":
            self.starts.append((t, event))
            size = read_number(event.details.get("world_size"))
            if size is not None and math.isfinite(size):
                self.attempts[event.attempt].world_size = int(size)
        elif name == "run_end":
            rank.ended_t = t
        elif name == "process_gone":
            rank.gone_t = t
        elif name in ("ckpt_saved", "ckpt_failed"):
            self.saves.append((t, event))
        if name == "phase_start" or name in _BEGINS:
            rank.phases.append((t, _BEGINS.get(name) or str(event.details.get("phase"))))
        elif name in _ENDS:
            rank.phases.append((t, None))

    @property
    def newest(self) -> AttemptLines | None:
        """The last attempt."""
        return next(reversed(self.attempts.values()), None)

    def ended_t(self) -> float:
        """When the run had come to its end; infinite where it did not, as far as it says."""
        newest = self.newest
        ended_t = None if newest is None else newest.ended_t()
        return math.inf if ended_t is None else ended_t

    @property
    def began_t(self) -> float:
        """When the first rank was heard."""
        return min(it.began_t for it in self.attempts.values())
