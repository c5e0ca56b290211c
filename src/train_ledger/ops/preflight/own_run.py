"""What does the run itself tell of a dry run: steps, saves, restarts, memory?

Read whole, as a run is before it has begun in earnest. What is large has begun already, and is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from train_ledger.facts import Event, Step
from train_ledger.run_dir import RunDir
from train_ledger.sources import read_run

__all__ = ["OwnRun", "read_own_run"]

_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class OwnRun:
    """What RUN holds. `steps` are by attempt, rank and step, `events` in order, `run` is its run.json.

    `why_not` says why its steps were not read, where there are some.
    """

    run: Mapping[str, Any]
    steps: Mapping[int, Mapping[int, Mapping[int, Step]]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    traces: tuple[Path, ...] = ()
    why_not: str = ""

    @property
    def last_attempt(self) -> int | None:
        return max(self.steps, default=None)

    def largest(self, name: str) -> dict[int, float]:
        """Of each rank of the last attempt the largest value of that field, where it tells one."""
        found: dict[int, float] = {}
        for rank, of in self.steps.get(self.last_attempt or 0, {}).items():
            values = [value for step in of.values() if (value := step.values.get(name)) is not None]
            if values:
                found[rank] = max(values)
        return found


def read_own_run(run_dir: RunDir) -> OwnRun:
    """Raises RunDirError where run.json cannot be used."""
    run = run_dir.read_run()
    size = sum(path.stat().st_size for _, path in run_dir.signal_files())
    if size > _MOST_BYTES:
        return OwnRun(run, why_not=f"its signals are {size >> 20} MiB: it has trained for long already")
    steps: dict[int, dict[int, dict[int, Step]]] = {}
    events: list[Event] = []
    for fact in read_run(run_dir, hardware_bytes=0).facts if size else ():
        if isinstance(fact, Event):
            events.append(fact)
        elif isinstance(fact, Step) and fact.rank is not None:
            steps.setdefault(fact.attempt, {}).setdefault(fact.rank, {})[fact.step] = fact
    folder = run_dir.path / "traces"
    traces = tuple(sorted(folder.rglob("*.json*"))) if folder.is_dir() else ()
    return OwnRun(run, steps, tuple(events), traces)
