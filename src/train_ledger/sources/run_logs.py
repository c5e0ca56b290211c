"""What do the logs of a run say that they did not say at the last look?

For a run whose ranks write no signal files: RUN/logs (torchrun --log-dir, or any logs), torchtitan's
RUN/structured_logs, and the kernel logs in RUN/hardware are followed as they grow. A line that tells no time
is given that of its file, and steps before the last one lie back by what they say they took.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from train_ledger.facts import Fact, Step
from train_ledger.run_dir import RunDir
from train_ledger.sources.attempt_count import AttemptCount, RankStreams
from train_ledger.sources.block import Block
from train_ledger.sources.fact_reader import FactReader
from train_ledger.sources.follow import Follower, Name
from train_ledger.sources.torchrun import place_of

__all__ = ["RunLogs"]

_POLL_BYTES = 8 << 20
_LISTING_S = 5.0
_MOST_FILES = 10_000
_FOLDERS = ("logs", "structured_logs", "hardware")


class RunLogs:
    """The facts of a run's logs, poll by poll.

    Facts of one file keep their order. A file that was written anew (as Lightning does with its metrics.csv)
    is read from its start; what its old lines told stays told. `silent` says that no log is there.
    """

    def __init__(self, run_dir: RunDir) -> None:
        self._run_dir = run_dir
        self._follower = _LogFollower(run_dir.path)
        self._ranks = RankStreams()
        self._readers: dict[str, FactReader] = {}
        self._damaged: Counter[str] = Counter()

    @property
    def silent(self) -> bool:
        """Whether there is no log to follow."""
        return not self._follower.files

    @property
    def caught_up(self) -> bool:
        """Whether the last poll read all that there was."""
        return self._follower.caught_up

    @property
    def bad_lines(self) -> Mapping[str, int]:
        """Lines and files that could not be read, by reason."""
        return sum((it.damaged for it in self._readers.values()), self._damaged + self._follower.skipped)

    @property
    def last_log_t(self) -> dict[int, float]:
        """When each rank wrote its newest line that tells a time, in unix seconds."""
        newest: dict[int, float] = {}
        for reader in self._readers.values():
            for rank, t in reader.last_log_t.items():
                newest[rank] = max(t, newest.get(rank, t))
        return newest

    def poll(self, max_bytes: int = _POLL_BYTES) -> list[Fact]:
        """What was written since the last poll; of a large backlog the next `max_bytes` or so."""
        touched: dict[str, float] = {}
        facts: dict[str, list[Fact]] = {}
        for block in self._follower.poll_blocks(max_bytes):
            written_t = touched.setdefault(block.file, _written_t(block.file))
            reader = self._reader(block, written_t)
            facts.setdefault(block.file, []).extend(reader.feed(block.data + b"\n"))
        for file in touched:
            facts[file] += self._readers[file].settle()
        return [fact for file, told in facts.items() for fact in _timed(told, touched[file])]

    def _reader(self, block: Block, written_t: float) -> FactReader:
        reader = self._readers.get(block.file)
        if reader is None or block.number == 1:
            shown = block.file.removeprefix(f"{self._run_dir.path}{os.sep}")
            place = place_of(Path(block.file))
            attempts = AttemptCount(shown, place.attempt, self._ranks)
            if reader is not None:  # written anew: what it says goes on from what it said
                self._damaged += reader.damaged
                attempts = reader.attempts
            reader = FactReader(shown, place, written_t=written_t, attempts=attempts)
            self._readers[block.file] = reader
        return reader

    def close(self) -> None:
        self._follower.close()


class _LogFollower(Follower):
    """Follows the logs of all folders of a run in which logs lie."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._listed: list[Name] = []
        self._listed_s = -math.inf

    def _names(self) -> Sequence[Name]:
        now = time.monotonic()
        if now - self._listed_s >= _LISTING_S:
            self._listed_s = now
            self._listed = [
                Name(series, 0, path) for series, path in enumerate(sorted(self._found())[:_MOST_FILES])
            ]
        return self._listed

    def _found(self) -> Iterator[str]:
        for folder in _FOLDERS:
            for at, below, names in os.walk(self.path / folder):
                below[:] = [name for name in below if not name.startswith(".")]
                wanted = (name for name in names if _is_log(folder, name))
                yield from (os.path.join(at, name) for name in wanted)


def _is_log(folder: str, name: str) -> bool:
    packed = name.endswith((".gz", ".xz", ".zst", ".bz2", ".tar"))
    of_kernel = folder != "hardware" or name.endswith(".kern.log")
    return not name.startswith(".") and not packed and of_kernel


def _written_t(file: str) -> float:
    try:
        return os.path.getmtime(file)
    except OSError:  # renamed or gone meanwhile: it was written just now
        return time.time()


def _timed(facts: list[Fact], written_t: float) -> list[Fact]:
    """The facts, those without a time of their own with one."""
    timed: list[Fact] = []
    t, later = written_t, None
    for fact in reversed(facts):
        if isinstance(fact, Step) and later is not None and math.isnan(fact.t):
            t -= _took_s(fact, later)
        if fact.t is not None and math.isfinite(fact.t):
            t = min(t, fact.t)
        else:
            fact = replace(fact, t=t)
        if isinstance(fact, Step):
            later = fact
        timed.append(fact)
    timed.reverse()
    return timed


def _took_s(fact: Step, later: Step) -> float:
    """Seconds from this step to a later one, by what that says of its own time; 0 where it says nothing."""
    each_s = later.values.get("step_time_s", 0.0)
    steps = later.step - fact.step
    return each_s * steps if math.isfinite(each_s) and each_s > 0 and 0 < steps < 10_000 else 0.0
