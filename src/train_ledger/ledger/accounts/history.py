"""What do all the facts of a run say of its time, so far as the accounts need it?

Takes the same facts as `ledger.Fold`, in the same order: those of one rank as it wrote them, otherwise in
any. Nothing is decided here; what is kept is small, and the accounts are made of it anew whenever somebody
asks, so that a rollback changes what was said before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from train_ledger.facts import Event, Fact, Fault, HardwareReading, Step, Stretch
from train_ledger.fields import read_number, read_world_size
from train_ledger.ledger.accounts.tape import RankTape
from train_ledger.ledger.starts import Starts
from train_ledger.ledger.state import RankState

__all__ = ["Happened", "History"]

_WHOLE_RANKS = 16
"""Of so many ranks every step is kept; the steps of the others are the same ones."""

_PAUSES = frozenset({"checkpoint_save", "checkpoint_load", "evaluation", "start_up", "compile"})
_BEGINS = {"ckpt_start": "checkpoint_save", "eval_start": "evaluation"}
_ENDS = {"ckpt_saved": "checkpoint_save", "ckpt_failed": "checkpoint_save", "eval_end": "evaluation"}
_KEPT_EVENTS = frozenset(
    {"run_end", "exception", "signal", "ckpt_start", "ckpt_saved", "ckpt_failed", "ckpt_loaded",
     "eval_start", "eval_end", "phase_start", "phase_end", "process_gone", "restart", "process_end",
     "signal_sent", "teardown"}
)  # fmt: skip
_OF_ALL = frozenset({"ckpt_start", "ckpt_loaded", "eval_start", "eval_end", "phase_start", "phase_end"})
_SAVES = frozenset({"ckpt_start", "ckpt_saved", "ckpt_failed"})
_KEPT_FAULTS = frozenset({"killed", "signal", "exception", "oom", "watchdog_timeout"})
_LATEST_T = 1e11
_GPU_MEMORY = "mem_allocated_peak"


@dataclass(frozen=True, slots=True)
class Happened:
    """An event or a fault that matters to the accounts, on the carried clock of its rank's host.

    `phase` is what it begins or ends, "" for what is no phase. Its rank wrote it in `lap`, behind the line of
    the step `behind`.
    """

    t: float
    name: str
    rank: int | None
    attempt: int
    step: int | None = None
    phase: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    lap: int = 0
    behind: int | None = None


class History:
    """Folds the facts of a run; `accounts.account` makes the accounts of it.

    `world_size` and `started` (unix s) are those of run.json, None where it does not say; `places` is what
    each rank says of its process and its GPU.
    """

    def __init__(self, run: str, run_json: Mapping[str, Any] | None = None) -> None:
        given = run_json or {}
        self.run = run
        self.world_size = read_world_size(given.get("world_size"))
        started = read_number(given.get("started"))
        self.started = started if started is not None and abs(started) < _LATEST_T else None
        self.forget()

    def forget(self) -> None:
        """Begin anew, as if nothing had been told."""
        self.ranks: dict[int | None, RankTape] = {}
        self.happened: list[Happened] = []
        self.world_sizes: dict[int, int] = {}
        self.by_logs = False
        self.places: dict[int, RankState] = {}
        self._starts = Starts()
        self._whole = 0
        self._saved_beside: set[tuple[int, int]] = set()

    @property
    def heard_t(self) -> float | None:
        """The newest line of any rank or launcher, on its own clock; None where there is none."""
        told = [last for it in self.ranks.values() for _, last in it.heard.values()]
        return max([*told, *(it.t for it in self.happened)], default=None)

    @property
    def attempts(self) -> set[int]:
        """The attempts that were heard of."""
        return {number for it in self.ranks.values() for number in it.heard}

    # -- what is folded

    def add_all(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            self.add(fact)

    def add(self, fact: Fact) -> None:
        """Fold one fact."""
        if isinstance(fact, Fault):
            self._fault(fact)
            return
        if not math.isfinite(fact.t):
            return
        for admitted in self._starts.admitted(-1 if fact.rank is None else fact.rank, fact):
            self._fold(admitted)

    def add_stretch(self, stretch: Stretch) -> None:
        """Fold steps in a row, as one by one."""
        tape = self.ranks.get(stretch.last.rank)
        place = 0
        while place < len(stretch.earlier):
            self.add(stretch.step_of(stretch.earlier[place]))
            place += 1
            tape = tape or self.ranks.get(stretch.last.rank)
            rest = stretch.earlier[place:]
            if rest and tape is not None and tape.attempt == stretch.last.attempt and tape.go_on(rest):
                break
        self.add(stretch.last)

    def add_hardware(self, fact: HardwareReading | Fault) -> None:
        """A kernel's or a card's word is no time of the run."""

    def _tape(self, rank: int | None) -> RankTape:
        tape = self.ranks.get(rank)
        if tape is None:
            is_whole = rank is None or self._whole < _WHOLE_RANKS
            self._whole += is_whole
            tape = self.ranks[rank] = RankTape(rank, is_whole=is_whole)
        return tape

    def _fold(self, fact: Fact) -> None:
        if isinstance(fact, Fault) or (isinstance(fact, Event) and not self._is_of_a_rank(fact)):
            return
        tape = self._tape(fact.rank)
        if not tape.joins(fact.attempt, fact.host):
            return
        if isinstance(fact, Step):
            tape.add_step(fact)
            if _GPU_MEMORY in fact.values and fact.rank is not None:
                known = self.places.get(fact.rank) or RankState(fact.rank)
                self.places[fact.rank] = replace(known, values={_GPU_MEMORY: fact.values[_GPU_MEMORY]})
            return
        t = (
            tape.clock.of_event(fact.t)
            if fact.name not in ("phase_start", "phase_end")
            else (fact.t + tape.clock.shift_s)
        )
        tape.hear(t)
        if fact.name == "run_start":
            tape.clock.steady_timer = True
            self._meet(fact)
        self._keep(fact, t, tape)

    def _is_of_a_rank(self, fact: Event) -> bool:
        """Whether it tells of a training process; what a launcher says is kept as it is."""
        if fact.name == "log_start":
            self.by_logs = True
            return False
        if fact.name in ("restart", "process_end", "signal_sent", "process_gone", "teardown"):
            self.happened.append(_of(fact, fact.t))
            return False
        return True

    def _meet(self, start: Event) -> None:
        size = read_world_size(start.details.get("world_size"))
        if size is not None:
            self.world_sizes.setdefault(start.attempt, size)
        if start.rank is not None:
            self.places[start.rank] = _place(start.rank, start.details)

    def _keep(self, event: Event, t: float, tape: RankTape) -> None:
        phase = str(event.details.get("phase") or "") if event.name.startswith("phase_") else ""
        phase = _BEGINS.get(event.name) or _ENDS.get(event.name) or phase
        if phase in _PAUSES:
            tape.paused = True
        elif event.name.startswith("phase_"):
            return
        if not (tape.is_whole or self._is_news(event)):
            return
        if event.name in _KEPT_EVENTS:
            last = tape.tape.last_step if tape.tape is not None else None
            kept = replace(_of(event, t, phase), lap=tape.lap, behind=last)
            of_step = kept.step is None and last is not None and kept.name in _SAVES
            self.happened.append(replace(kept, step=last) if of_step else kept)

    def _is_news(self, event: Event) -> bool:
        """Whether one of the ranks that say the same as others is to be kept: not what they all save."""
        if event.name in _OF_ALL:
            return False
        if event.name != "ckpt_saved" or event.step is None:
            return True
        save = (event.attempt, event.step)
        is_new = save not in self._saved_beside
        self._saved_beside.add(save)
        return is_new

    def _fault(self, fault: Fault) -> None:
        if fault.t is not None and math.isfinite(fault.t) and fault.fault in _KEPT_FAULTS:
            self.happened.append(
                Happened(
                    fault.t,
                    fault.fault,
                    fault.rank,
                    fault.attempt,
                    fault.step,
                    "",
                    fault.details,
                    fault.source,
                )
            )

    def settle(self) -> None:
        """Fold what waited for an attempt that most ranks have entered by now."""
        for_all = None in self.ranks
        for fact in self._starts.settled(1 if for_all else max(len(self.ranks), self.world_size or 0)):
            self._fold(fact)


def _place(rank: int, told: Mapping[str, Any]) -> RankState:
    """What a rank says of its process and its GPU."""
    pid, gpu, uuid, pci = (told.get(name) for name in ("pid", "gpu", "uuid", "pci"))
    return RankState(
        rank,
        pid=pid if isinstance(pid, int) else None,
        gpu=gpu if isinstance(gpu, int) else None,
        uuid=uuid if isinstance(uuid, str) else None,
        pci=pci if isinstance(pci, str) else None,
    )


def _of(event: Event, t: float, phase: str = "") -> Happened:
    return Happened(t, event.name, event.rank, event.attempt, event.step, phase, event.details, event.source)
