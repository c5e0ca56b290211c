"""What do the logs of a run say that they did not say at the last look?

For a run whose ranks write no signal files: RUN/logs (torchrun --log-dir, or any logs) and torchtitan's
RUN/structured_logs are followed as they grow. A line that tells no time is given that of its file, and steps
before the last one lie back by what they say they took.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.fields import LARGEST_WORLD_SIZE
from train_ledger.run_dir import RunDir
from train_ledger.sources.files.arrivals import Arrivals
from train_ledger.sources.files.block import Block
from train_ledger.sources.files.positions import Start
from train_ledger.sources.logs.log_folders import LogFollower
from train_ledger.sources.logs.torchrun import place_of
from train_ledger.sources.reading.attempt_count import AttemptCount, RankStreams
from train_ledger.sources.reading.fact_reader import FactReader
from train_ledger.sources.reading.fact_times import merged, timed
from train_ledger.sources.reading.log_zone import LogZone

__all__ = ["RunLogs"]

_POLL_BYTES = 1 << 20
_MOST_WAITING = 1_000_000
_OF_UNIX_TIME = "structured_logs"


class RunLogs:
    """The facts of a run's logs, poll by poll.

    `hosts` limits them to ranks of these hosts and to what nobody can place; `placed` is where ranks are
    known to run besides what their lines tell. Facts of one file keep their order; those of different files
    are merged by their times. A file that was written anew (as Lightning does with its metrics.csv) is read
    from its start; what its old lines told stays told. That there is a log at all is an event, `log_start`,
    and so is how long lines lie in a buffer, `log_every`.
    """

    def __init__(
        self,
        run_dir: RunDir,
        hosts: Collection[str] | None = None,
        placed: Mapping[int, str] | None = None,
    ) -> None:
        self._run_dir = run_dir
        self._hosts = None if hosts is None else frozenset(hosts)
        self._follower = LogFollower(run_dir)
        self._ranks = RankStreams()
        self._readers: dict[str, FactReader] = {}
        self._arrivals: dict[str, Arrivals] = {}
        self._zones: dict[str, LogZone] = {}
        self._told: dict[str, _Told] = {}
        self._since: dict[str, int] = {}
        self._damaged: Counter[str] = Counter()
        self._damage: dict[str, Counter[str]] = {}
        self._placed: Mapping[int, str] = {} if placed is None else placed
        self._told_hosts: dict[int, str] = {}
        self._has_begun = False

    @property
    def silent(self) -> bool:
        """Whether there is no log to follow."""
        return not self._follower.files

    @property
    def files(self) -> int:
        """How many logs are followed."""
        return self._follower.files

    @property
    def lag_bytes(self) -> int:
        """Bytes that were seen and not read yet."""
        return self._follower.lag_bytes

    @property
    def read_bytes(self) -> int:
        """Bytes of all lines that were read; where it stands still, nothing was written."""
        return self._follower.read_bytes

    @property
    def left_out_bytes(self) -> int:
        """Bytes of the logs that are not read at all, since reading began behind them."""
        return self._follower.left_out_bytes

    @property
    def last_problem(self) -> str | None:
        """The newest trouble with a file in words for people."""
        return self._follower.last_problem

    @property
    def caught_up(self) -> bool:
        """Whether the last poll read all that there was."""
        return self._follower.caught_up

    @property
    def bad_lines(self) -> Counter[str]:
        """Lines and files that could not be read, by reason."""
        return sum(self._damage.values(), self._damaged + self._follower.skipped)

    @property
    def where(self) -> Mapping[str, str]:
        """Of each reason where it was met last, as far as that is known."""
        damaged = {reason: self._shown(file) for file, it in self._damage.items() for reason in it}
        return {**damaged, **self._follower.skipped.where}

    @property
    def host_of(self) -> Mapping[int, str]:
        """Where each rank runs, as far as is known."""
        return {**self._placed, **self._told_hosts}

    @property
    def last_log_t(self) -> dict[int, float]:
        """When each rank wrote its newest line that tells a time, in unix seconds."""
        newest: dict[int, float] = {}
        for reader in self._readers.values():
            for rank, t in reader.last_log_t.items():
                newest[rank] = max(t, newest.get(rank, t))
        return newest

    def begin_at_tail(self, whole_bytes: int) -> None:
        """Read logs that are together larger than this only at their starts and ends.

        Call it before the first poll; logs that come later are read whole.
        """
        self._follower.begin(Start((), whole_bytes))

    def poll(self, max_bytes: int = _POLL_BYTES) -> list[Fact]:
        """What was written since the last poll.

        Of a large backlog the next `max_bytes` or so are read, and it is told when it was read to its end:
        only from there can it be said when a line without a time was written.
        """
        told = self._told
        for block in self._follower.poll_blocks(max_bytes):
            of_file = told.get(block.file)
            if of_file is None:
                of_file = told[block.file] = _Told()
            of_file.written_t = _written_t(block.file)
            reader = self._reader(block, of_file)
            of_file.facts += reader.feed(block.data + b"\n")
            of_file.size += len(block.data) + 1
        if not self.caught_up and sum(len(it.facts) for it in told.values()) < _MOST_WAITING:
            return []
        self._told = {}
        for file, of_file in told.items():
            reader = self._readers[file]
            of_file.facts += reader.settle()
            if damage := reader.damaged:
                self._damage[file] = damage
        return merged([self._whole(file, of_file) for file, of_file in told.items()], self._is_wanted)

    def _whole(self, file: str, told: _Told) -> list[Fact]:
        """The facts of a file with their times, and what is to be said of the file itself."""
        shown = self._shown(file)
        if not shown.startswith(_OF_UNIX_TIME):
            told.facts = self._zones.setdefault(file, LogZone()).corrected(told.facts, told.written_t)
        arrivals = self._arrivals.setdefault(file, Arrivals())
        if any(isinstance(fact, Fault) for fact in told.facts):  # some were kept until what follows was seen
            told.facts.sort(key=lambda fact: _line_of(fact, len(shown)))
        steps = [fact for fact in told.facts if isinstance(fact, Step)]
        is_news = arrivals.came(steps, told.written_t, told.size, is_torn=arrivals.is_new and _is_torn(file))
        facts = timed(told.facts, told.written_t)
        if not self._has_begun:
            self._has_begun = True
            t = min((fact.t for fact in facts if fact.t is not None), default=told.written_t)
            first = told.facts[0].rank if told.facts else place_of(Path(file)).rank
            facts.insert(0, Event(t, "log_start", first, source=f"{shown}:1"))
        if is_news:
            last = steps[-1]
            every = {"every_s": round(arrivals.every_s, 3)}
            t, attempt, host = told.written_t, last.attempt, last.host
            facts.append(Event(t, "log_every", last.rank, None, attempt, host, last.source, every))
        return facts

    def _is_wanted(self, fact: Fact) -> bool:
        if fact.rank is not None and fact.rank >= LARGEST_WORLD_SIZE:
            return False
        if fact.rank is not None and fact.host is not None:
            self._told_hosts[fact.rank] = fact.host
        if self._hosts is None:
            return True
        host = fact.host
        if host is None and fact.rank is not None:
            host = self._told_hosts.get(fact.rank) or self._placed.get(fact.rank)
        return host is None or host in self._hosts

    def _shown(self, file: str) -> str:
        """A file's name as seen from the run directory."""
        return file.removeprefix(f"{self._run_dir.path}{os.sep}")

    def _reader(self, block: Block, told: _Told) -> FactReader:
        file = block.file
        reader = self._readers.get(file)
        if reader is None or (block.number == 1 and not block.since):
            shown = self._shown(file)
            place = place_of(Path(file))
            attempts = AttemptCount(shown, place.attempt, self._ranks)
            if reader is not None:  # written anew: what it says goes on from what it said
                self._damaged += reader.damaged
                self._damage.pop(file, None)
                attempts = reader.attempts
            reader = FactReader(shown, place, written_t=told.written_t, attempts=attempts)
            self._readers[file], self._since[file] = reader, 0
        if block.since != self._since[file]:
            self._since[file] = block.since
            told.facts += reader.skip_to(block.since)
        return reader

    def close(self) -> None:
        self._follower.close()


@dataclass(slots=True)
class _Told:
    """What was read of one file and not told yet."""

    written_t: float = 0.0
    facts: list[Fact] = field(default_factory=list)
    size: int = 0


def _line_of(fact: Fact, name_length: int) -> tuple[int, ...]:
    """Where a fact stands in its file: "NAME:line", or "NAME@byte:line" behind what was left out."""
    since, _, line = fact.source[name_length:].rpartition(":")
    return tuple(int(it) if it.isdecimal() else 0 for it in (since[1:], line))


def _written_t(file: str) -> float:
    try:
        return os.path.getmtime(file)
    except OSError:  # renamed or gone meanwhile: it was written just now
        return time.time()


def _is_torn(file: str) -> bool:
    """Whether its last line has no end yet."""
    try:
        with open(file, "rb", buffering=0) as log:
            log.seek(-1, os.SEEK_END)
            return log.read(1) not in (b"\n", b"")
    except OSError:  # gone, or empty
        return False
