"""What does one rank's row of the Gantt show, from its own signal lines?

The thread `steps` holds each step, from the end of its line back by its `step_time_s`, and in it the parts,
laid out from their durations (`step_parts`). `phases` and `checkpoints` hold spans that begin and end at
times which the rank wrote itself. What just happened is an instant on `events`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from train_ledger.facts import Event, Step
from train_ledger.ledger import RankClock
from train_ledger.ops.gantt.lanes import Lanes, Threads
from train_ledger.ops.gantt.selection import Selection
from train_ledger.ops.gantt.step_parts import PASSES, parts_of
from train_ledger.ops.gantt.tally import Tally
from train_ledger.ops.gantt.trace_file import TraceFile, encoded, microseconds

__all__ = ["RankChart"]

_CATEGORIES = {"exception": "fault", "signal": "fault", "ckpt_failed": "fault", "run_start": "attempt"}
_SHOWN_VALUES = ("loss", "grad_norm", "tps", "mfu")
_LONGEST_TEXT = 300
_LONGEST_S = 1e7
_MOST_DETAILS = 20


class RankChart:
    """Draws the facts of one rank, handed in in the order in which it wrote them.

    `lead_s(attempt)` is by how much its host's clock is ahead of that of rank 0's host; `counters` are the
    fields that are drawn as graphs.
    """

    def __init__(
        self,
        rank: int,
        trace: TraceFile,
        threads: Threads,
        selection: Selection,
        tally: Tally,
        lead_s: Callable[[int], float],
        counters: Sequence[str] = (),
    ) -> None:
        self._rank = rank
        self._trace = trace
        self._threads = threads
        self._selection = selection
        self._tally = tally
        self._lead_s_of = lead_s
        self._counters = counters
        self._clock = RankClock()
        self._attempt = -1
        self._lead_s = 0.0
        self._step: int | None = None
        self._step_t: float | None = None
        self._paused = False
        self._drawn_us = -(1 << 62)
        self._latest_us: int | None = None
        self._phases = Lanes(self._emitter("phases", "phase"))
        self._saves = Lanes(self._emitter("checkpoints", "checkpoint"))

    def add(self, fact: Step | Event) -> None:
        """Draw one fact."""
        if fact.attempt < self._attempt:
            self._tally.miss("line of an attempt that is over", fact.source)
            return
        if fact.attempt > self._attempt:
            self._begin(fact.attempt)
        if isinstance(fact, Step):
            self._add_step(fact)
        else:
            self._add_event(fact)

    def end(self) -> None:
        """There is nothing more: what never ended is drawn up to the last thing that the rank wrote."""
        for lanes in (self._phases, self._saves):
            if self._latest_us is not None:
                self._tally.unfinished += lanes.close_all(self._latest_us)
            if lanes.forgotten:
                self._tally.miss("span among too many open ones", f"rank {self._rank}", lanes.forgotten)
                lanes.forgotten = 0

    def _begin(self, attempt: int) -> None:
        self.end()
        self._attempt = attempt
        self._tally.attempts.add(attempt)
        self._lead_s = self._lead_s_of(attempt)
        self._step = self._step_t = None
        self._clock.new_attempt(same_host=True)

    # -- steps

    def _add_step(self, fact: Step) -> None:
        t = self._clock.of_step(fact, self._step_t, paused=self._paused)
        again = fact.step == self._step
        if self._step is not None and fact.step < self._step:
            self._instant("step goes back", t, {"from": self._step, "to": fact.step}, "attempt")
        previous_t = None if self._step_t is None or again else self._step_t
        self._step, self._step_t, self._paused = fact.step, t, False
        end_us = self._at(t)
        if not self._selection.has_step(fact.step):
            return
        if not again:
            self._draw_step(fact, end_us, *_length_s(fact.values, t, previous_t))
        self._count(fact, end_us)

    def _draw_step(self, fact: Step, end_us: int, length_s: float, start: str | None) -> None:
        start_us = max(min(end_us, end_us - microseconds(length_s)), self._drawn_us)
        end_us = max(end_us, start_us)
        if not self._selection.touches(start_us / 1e6, end_us / 1e6):
            return
        self._drawn_us = end_us
        tid = self._threads["steps"]
        args: dict[str, Any] = {"step": fact.step, "attempt": fact.attempt}
        args |= {name: fact.values[name] for name in _SHOWN_VALUES if name in fact.values}
        if start is not None:
            args["start"] = start
        self._trace.slice(self._rank, tid, f"step {fact.step}", "step", start_us, end_us, encoded(args))
        self._tally.steps += 1
        for part in parts_of(fact.values, start_us, end_us):
            shown = f'{{"step":{fact.step},"measured_s":{part.seconds!r},"position":"reconstructed"}}'
            self._trace.slice(self._rank, tid, part.name, "part", part.start_us, part.end_us, shown)

    def _count(self, fact: Step, at_us: int) -> None:
        if not self._selection.touches(at_us / 1e6, at_us / 1e6):
            return
        for name in self._counters:
            value = fact.values.get(name)
            if value is not None and math.isfinite(value):
                self._trace.counter(self._rank, self._threads["steps"], name, at_us, value)
        loss = fact.values.get("loss", 0.0)
        if not math.isfinite(loss):
            self._mark("loss is not finite", at_us, {"step": fact.step, "loss": str(loss)}, "fault", "p")

    # -- events

    def _add_event(self, fact: Event) -> None:
        name, details = fact.name, fact.details
        if name == "run_start":
            self._clock.steady_timer = True
        if name in ("phase_start", "phase_end"):
            self._paused = True
            self._phase(name, str(details.get("phase"))[:_LONGEST_TEXT], fact.t + self._clock.shift_s)
            return
        t = self._clock.of_event(fact.t)
        self._paused = self._paused or name.startswith(("ckpt_", "eval_"))
        if name in ("ckpt_start", "ckpt_saved", "ckpt_failed"):
            self._save(name, fact, t)
        if name != "ckpt_start":
            step = {} if fact.step is None else {"step": fact.step}
            shown = {**step, "attempt": fact.attempt, **details}
            self._instant(_title(fact), t, shown, _CATEGORIES.get(name, "event"))

    def _phase(self, event: str, name: str, t: float) -> None:
        at_us = self._at(t)
        if event == "phase_start":
            self._phases.open(name, at_us, {"attempt": self._attempt})
        else:
            self._phases.close(name, at_us, {})

    def _save(self, event: str, fact: Event, t: float) -> None:
        name, at_us = f"checkpoint {fact.step}", self._at(t)
        if event == "ckpt_start":
            self._saves.open(name, at_us, {"attempt": self._attempt})
            return
        ended = {"failed": True} if event == "ckpt_failed" else {}
        if not self._saves.close(name, at_us, ended):
            took_s = fact.details.get("duration_s")
            if isinstance(took_s, int | float) and 0 < took_s < _LONGEST_S:
                self._saves.open(name, at_us - microseconds(took_s), {"attempt": self._attempt})
                self._saves.close(name, at_us, ended)

    # -- what is drawn

    def _at(self, t: float) -> int:
        at_us = microseconds(t - self._lead_s)
        self._latest_us = at_us if self._latest_us is None else max(at_us, self._latest_us)
        return at_us

    def _instant(self, name: str, t: float, args: Mapping[str, Any], category: str) -> None:
        self._mark(name, self._at(t), args, category, "p" if category != "event" else "t")

    def _mark(self, name: str, at_us: int, args: Mapping[str, Any], category: str, scope: str) -> None:
        if self._in_steps() and self._selection.touches(at_us / 1e6, at_us / 1e6):
            short = {key: _short(value) for key, value in list(args.items())[:_MOST_DETAILS]}
            tid = self._threads["events"]
            self._trace.instant(self._rank, tid, name, category, at_us, encoded(short), scope)

    def _emitter(self, label: str, category: str) -> Callable[[int, str, int, int, str], None]:
        def emit(lane: int, name: str, start_us: int, end_us: int, args: str) -> None:
            if self._in_steps() and self._selection.touches(start_us / 1e6, end_us / 1e6):
                tid = self._threads[label if lane == 0 else f"{label} {lane + 1}"]
                self._trace.slice(self._rank, tid, name, category, start_us, end_us, args)
                self._tally.spans += 1

        return emit

    def _in_steps(self) -> bool:
        """Whether what comes between two steps belongs to the selected ones: to the later or the earlier."""
        step = self._step
        if step is None:
            return self._selection.first_step == 0
        return self._selection.has_step(step) or self._selection.has_step(step + 1)


def _length_s(values: Mapping[str, float], t: float, previous_t: float | None) -> tuple[float, str | None]:
    """How long a step took that ended at `t`, and whence its start is known where nobody measured it."""
    timed_s = values.get("step_time_s", math.nan)
    if 0 <= timed_s < _LONGEST_S:
        return timed_s, None
    if previous_t is not None:
        return max(0.0, t - previous_t), "the end of the line before"
    parts_s = sum(it for it in (values.get(name, 0.0) for name in PASSES) if 0 < it < _LONGEST_S)
    return parts_s, "reconstructed from its parts" if parts_s else "unknown"


def _title(fact: Event) -> str:
    if fact.name in ("ckpt_saved", "ckpt_failed"):
        return f"{fact.name} {fact.step}"
    if fact.name == "run_start":
        return f"attempt {fact.attempt} starts"
    about = {"exception": "type", "signal": "number", "warning": "about"}.get(fact.name, "")
    return f"{fact.name} {_short(fact.details[about])}" if about in fact.details else fact.name


def _short(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)[:_LONGEST_TEXT]
