"""Of which step are the timers that DeepSpeed's wall_clock_breakdown prints without a step's number?

`time (ms) | fwd_microstep: …` comes for each micro-batch, `time (ms) | fwd: … | bwd: … | step: …` closes a
step (one line does both in the pipeline); `step=N` comes every steps_per_print steps, before the line that
closes N. So steps are counted on from the last `step=N`, and back from the first. Of several micro-batches
of a step the last one's values stay; the closing line has their sums. Where no number comes (newer versions
hide lines of level INFO) the timers are events.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from train_ledger.facts import Event, Fact, Step
from train_ledger.sources.formats.megatron.megatron_timers import is_deepspeed
from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.formats.trainer_front import Front, is_source_code, read_front
from train_ledger.sources.lines.log_line import LogLine

__all__ = ["FIELDS_OF_TIMERS", "TimerSteps"]

_LINE = re.compile(r"\btime \(ms\) {0,2}\|(.*)", re.DOTALL)
_TIMER = re.compile(r"([A-Za-z0-9_][\w-]{0,60}): (\d{1,12}(?:\.\d{1,9})?)")
_FIELDS = {
    "fwd": "fwd_s",
    "forward": "fwd_s",
    "bwd": "bwd_s",
    "backward": "bwd_s",
    "step": "opt_s",
    "batch_input": "data_wait_s",
}
FIELDS_OF_TIMERS = frozenset(_FIELDS.values())
_MOST_WAITING = 4096


class TimerSteps:
    """Gives lines of timers their step, or makes an event `timers` of them."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._is_open = False
        self._waiting: deque[tuple[bool, Front, str, dict[str, float]]] = deque()

    def told(self, step: int) -> Iterator[Step]:
        """`step=N` was read: what waited for a number, by counting back from it."""
        closed = sum(it[0] for it in self._waiting)
        number = step - closed
        for closes, front, source, values in self._waiting:
            if number >= 0:
                yield Step(front.t, number, front.rank, 0, front.host, source, values)
            number += closes
        self._waiting.clear()
        self._is_open = self._is_open or step != self._step
        self._step = step

    def facts(self, line: LogLine, source: str) -> Iterator[Fact]:
        """The step of a line of timers; it waits where no number is known yet."""
        match = _LINE.search(line.text)
        timers = _TIMER.findall(match[1]) if match else []
        names = [name for name, _ in timers]
        if match is None or not is_deepspeed(names) or is_source_code(line.text[: match.start()]):
            return
        front = read_front(line, line.text[: match.start()])
        if front.rank is None:  # no other rank prints them
            front = replace(front, rank=0)
        values = {
            _FIELDS.get(name, f"{own_name(name)}_s"): float(it) / 1e3 for name, it in timers if float(it)
        }
        closes = "step" in names or "train_batch" in names
        if self._step is None:
            if len(self._waiting) >= _MOST_WAITING:
                yield self._of_no_step()
            self._waiting.append((closes, front, source, values))
            return
        number = self._step if self._is_open else self._step + 1
        if closes:
            self._step, self._is_open = number, False
        yield Step(front.t, number, front.rank, 0, front.host, source, values)

    def _of_no_step(self) -> Event:
        _, front, source, values = self._waiting.popleft()
        return Event(front.t, "timers", front.rank, None, 0, front.host, source, dict(values))

    def end(self) -> Iterator[Event]:
        """The log is over: what still waits is of no known step."""
        while self._waiting:
            yield self._of_no_step()
