"""How much of a step was the rank's own work, and how much did it wait in collectives?

    compute_s = the step − comm_wait_s − what has a field or a phase of its own (data, checkpoint, evaluation)

The wall alone cannot say it: the one who drags makes all others wait, and every rank's step takes as long.
Only where every collective of a step was seen – by the sequence numbers of the process groups – are there
figures at all: waiting that nobody saw would count as work, and accuse the wrong rank.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from train_ledger.signals.timing.timeline import CudaTimeline, Timeline

__all__ = ["WorkClock"]

_STEPS_KEPT = 8
_MOST_PAIRS = 1024
_SHARE = 0.0005
"""What the figures may cost of the training thread's time."""

_LONGEST_REST = 100
_STEP_S = 4e-5
"""What is asked at the end of a step costs, in caches that the training has filled with other things."""

_SHORTEST_S = 0.001
"""A shorter step trains nothing."""


class _Span:
    """One step: from `start` to `end`; None where a stamp could not be had."""

    __slots__ = ("apart", "end", "start", "waits", "whole")

    def __init__(self, start: Any) -> None:
        self.start = start
        self.end: Any = None
        self.waits: list[tuple[Any, Any]] = []
        self.apart: list[tuple[Any, Any]] = []
        self.whole = True


class WorkClock:
    """Keeps the stamps of a step and reckons it once they are passed; `line` is set by who knows the device.

    More than a thousand waits in a step cost too much: such a step has no figures. Where the figures of a
    step cost more than their share of it, so many of the next steps are left out that they do not – and as
    many more as it takes for all ranks to time the same steps: their figures tell something beside each
    other's alone.
    """

    def __init__(self) -> None:
        self.on_cuda: CudaTimeline | None = None
        self._line: Timeline | None = None
        self._now: _Span | None = None
        self._earlier: deque[_Span] = deque()
        self._apart = 0
        self._apart_start: Any = None
        self._waiting = False
        self._began_s = 0.0
        self._rest = 0
        self._steps = 0
        self.idle = True
        """Whether no step is being timed."""

    @property
    def line(self) -> Timeline | None:
        """The clock; `on_cuda` is the same where it is one of CUDA events."""
        return self._line

    @line.setter
    def line(self, line: Timeline | None) -> None:
        self._line = line
        self.on_cuda = line if isinstance(line, CudaTimeline) else None

    @property
    def rests(self) -> bool:
        """Whether this step and the next are left out."""
        return self._rest > 1

    def begin_wait(self) -> Any:
        """Before what may wait for another rank; None where it is not to be timed."""
        if self._now is None or self._apart or self._waiting or self._line is None:
            return None
        if len(self._now.waits) >= _MOST_PAIRS:
            self._now.whole = False
            return None
        stamp = self._line.now()
        if stamp is not None:  # else it is another thread's
            self._waiting = True
        return stamp

    def end_wait(self, start: Any) -> None:
        """After it; `start` is what `begin_wait` gave."""
        if start is None:
            return
        self._waiting = False
        end = self._line.now() if self._line is not None else None
        if self._now is None:
            return
        if end is None:
            self._now.whole = False
        else:
            self._now.waits.append((start, end))

    def enter_apart(self) -> bool:
        """A phase begins that is no part of the rank's own work; False where it is another thread's."""
        stamp = self._line.now() if self._line is not None and self._now is not None else None
        if stamp is None:
            return False
        self._apart += 1
        if self._apart == 1:
            self._apart_start = stamp
        return True

    def leave_apart(self, counts: bool = True) -> None:
        """It ends, as often as it began; its time is own work after all where it does not count."""
        self._apart -= 1
        if self._apart or self._now is None or self._line is None or not counts:
            return
        self._leave(self._now)

    def _leave(self, span: _Span) -> None:
        end = self._line.now() if self._line is not None else None
        if end is None or self._apart_start is None:
            span.whole = False
        else:
            span.apart.append((self._apart_start, end))

    def step(self, whole: bool) -> dict[str, float]:
        """The step ends here; `whole` says whether all its collectives were seen.

        Returns the fields of the newest step that is reckoned: on the wall this one, on CUDA an earlier one.
        """
        self._steps += 1
        if self._line is None:
            return {}
        now_s = time.perf_counter()
        took_s, self._began_s = now_s - self._began_s, now_s
        if self._rest:
            self._rest -= 1
            if self._rest:
                return self._reckoned()
        if self._waiting:  # an error or Ctrl-C came between a wait and its end, and the training goes on
            self._waiting = whole = False
        if self._apart and self._now is not None:  # a phase that lasts over the end of the step
            self._leave(self._now)
        stamp = self._line.now()
        if self._now is not None:
            self._now.end = stamp
            self._now.whole &= whole and stamp is not None and self._now.start is not None
            self._earlier.append(self._now)
            self._rest = self._steps_to_rest(self._now, took_s)
        self._now = None if self._rest else _Span(stamp)
        self.idle = self._now is None
        if self._apart:
            self._apart_start = self._line.now()  # a stamp of its own: each is given back once
        return self._reckoned()

    def _steps_to_rest(self, span: _Span, took_s: float) -> int:
        assert self._line is not None  # noqa: S101
        pairs = len(span.waits) + len(span.apart)
        if pairs >= _MOST_PAIRS:
            return _LONGEST_REST
        if took_s < _SHORTEST_S:
            return 0
        fewest = int(min(_LONGEST_REST, (_STEP_S + pairs * self._line.pair_s) / (_SHARE * took_s)))
        return self._to_common_step(fewest)

    def _to_common_step(self, fewest: int) -> int:
        """So many steps or a few more, to one whose number a power of two divides: ranks that rest for
        different times still have those steps in common.
        """
        stride = 1 << fewest.bit_length()
        return fewest + -(self._steps + fewest) % stride if fewest else 0

    def _reckoned(self) -> dict[str, float]:
        fields: dict[str, float] = {}
        assert self._line is not None  # noqa: S101 – asked only where there is one
        while self._earlier:
            span = self._earlier[0]
            late = len(self._earlier) > _STEPS_KEPT
            if not late and span.end is not None and not self._line.passed(span.end):
                break
            self._earlier.popleft()
            if late or span.end is None:
                continue  # its stamps are not used again: the GPU may still have to record them
            if span.whole:
                fields = self._fields(span)
            if self.on_cuda is not None:
                self.on_cuda.give_back(
                    [*(it for pair in (*span.waits, *span.apart) for it in pair), span.start]
                )
        return fields

    def _fields(self, span: _Span) -> dict[str, float]:
        assert self._line is not None  # noqa: S101
        between = self._line.between
        waited = apart = 0.0
        try:
            for start, end in span.waits:
                waited += between(start, end)
            for start, end in span.apart:
                apart += between(start, end)
            took = between(span.start, span.end)
        except RuntimeError:  # a CUDA error of the training's own
            return {}
        return {"compute_s": max(0.0, took - waited - apart), "comm_wait_s": waited}
