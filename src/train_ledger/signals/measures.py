"""What has this process measured by itself since the last step?

Phases, collections of garbage, output, waiting in collectives, the host, the allocator, and what follows from
the time that the step took.
"""

from __future__ import annotations

from train_ledger.signals.sampling.host import GarbageClock, HostSample
from train_ledger.signals.sampling.memory import MemoryCounters
from train_ledger.signals.sampling.output import Output
from train_ledger.signals.sampling.throughput import Throughput
from train_ledger.signals.timing.collectives import Collectives
from train_ledger.signals.timing.phases import Phases

__all__ = ["Measures"]


class Measures:
    """The measured fields of a step's line; `host` is to be sampled now and then, beside the training."""

    def __init__(
        self, throughput: Throughput, memory: MemoryCounters, collectives: Collectives, phases: Phases
    ) -> None:
        self.host = HostSample()
        self._throughput = throughput
        self._memory = memory
        self._garbage = GarbageClock()
        self._output = Output()
        self._queue_depth: int | None = None
        self._collectives = collectives
        self._phases = phases

    def take(self, took_s: float | None, tokens: float | None) -> dict[str, float]:
        """The fields of the step that ends now; `took_s` is None for the first one."""
        line = self._phases.take()
        line["gc_s"] = self._garbage.take()
        line.update(self._output.take())
        line.update(self._collectives.step())
        if self._queue_depth is not None:
            line["queue_depth"] = self._queue_depth
            self._queue_depth = None
        line.update(self.host.fields)
        line.update(self._memory.take())
        if took_s is not None:
            line["step_time_s"] = took_s
            if tokens is not None:
                line.update(self._throughput.fields(tokens, took_s))
        return line

    def saw_ready(self, depth: int) -> None:
        """So many batches were ready when the training asked for one; the fewest of a step count."""
        self._queue_depth = depth if self._queue_depth is None else min(depth, self._queue_depth)

    def close(self) -> None:
        """Take back what counts in the program."""
        self._garbage.close()
        self._output.close()
        self._collectives.close()
        self.host.close()
