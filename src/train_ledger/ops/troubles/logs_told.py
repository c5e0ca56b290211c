"""What do the logs of a run tell of faults, and of its ends, starts and steps?

Of long logs the ends alone are read.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.ops.troubles.trouble import Trouble
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunLogs

__all__ = ["LogsTold", "logs_told"]

_LOGS_BYTES = 64 << 20
_MOST = 20_000
_WENT_ON = 3
"""Without a rank the others come one step further at most; the third is a step of all."""

_LIVES = ("restart", "run_start")


@dataclass(slots=True)
class LogsTold:
    """What stands in logs until `until_t`: faults, and the times (unix seconds) of ends, of the last life, of
    beginnings of logs and of restarts.

    Of faults, the first 20 000 are kept. `left_out_bytes` were not read, in the middle of long files.
    """

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
            self._fault(fact)

    def _fault(self, fact: Fault) -> None:
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

    def _event(self, fact: Event) -> None:
        if fact.name in _LIVES:
            self._lived(fact.t)
        if fact.name == "log_start":
            self.began_t.append(fact.t)
        if fact.name == "restart":
            self.restarts_t.append(fact.t)

    def went_on_after(self, it: Trouble) -> bool:
        """Whether a log tells of some more steps behind an exception: nobody died of it."""
        file, _, line = it.source.rpartition(":")
        steps = self.steps_at.get(file) or [0]
        is_raised = it.kind in ("exception", "oom") and not it.said.startswith("ended with")
        return is_raised and line.isdecimal() and len(steps) == _WENT_ON and steps[0] > int(line)


def logs_told(run_dir: RunDir, until_t: float | None) -> LogsTold:
    """What the logs of the run tell by `until_t` (unix seconds; None: by now)."""
    logs, found = RunLogs(run_dir), LogsTold(until_t)
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
