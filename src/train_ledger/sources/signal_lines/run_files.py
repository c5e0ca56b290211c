"""What do the files of a run directory say that they did not say at the last look?

Follows the signal files of all ranks – or of the ranks of some hosts – and yields their facts.
"""

from __future__ import annotations

import dataclasses
import re
import resource
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from train_ledger.facts import Event, Fact, Step, Stretch
from train_ledger.run_dir import RunDir
from train_ledger.sources.files.folder import FolderFollower
from train_ledger.sources.files.follow import Follower
from train_ledger.sources.files.memory import Counted, FilesMemory, FollowerMemory
from train_ledger.sources.files.not_read import not_read_in_words
from train_ledger.sources.files.positions import Start
from train_ledger.sources.files.stream import Block, Line
from train_ledger.sources.signal_lines.jsonl import SignalDecoder
from train_ledger.sources.signal_lines.plain import Run, runs
from train_ledger.sources.signal_lines.rank_hosts import RankHosts
from train_ledger.sources.signal_lines.signal_file import place_of, rank_in

__all__ = ["POLL_BYTES", "Folding", "RunFiles"]

POLL_BYTES = 8 << 20
_STARTS = b'"run_start"'
_ATTEMPT = re.compile(rb'"attempt": ?(\d{1,9})\b')
_LONGEST_LINE_BYTES = 1 << 16


class Folding(Protocol):
    """What takes the facts of a run; `ledger.Fold` fits."""

    def add(self, fact: Fact) -> None: ...
    def add_stretch(self, stretch: Stretch) -> None: ...


class RunFiles:
    """The facts of a run directory, poll by poll.

    `hosts` limits them to ranks of these hosts; where a rank runs is taken from ranks.jsonl and from its own
    run_start, and a rank of which it is not known is read. Facts of one file keep their order; those of
    different files are merged by their times. Every step carries the host of its rank where that is known.
    """

    def __init__(self, run_dir: RunDir, hosts: Collection[str] | None = None) -> None:
        _allow_many_files()
        self._run_dir = run_dir
        self._hosts = RankHosts(hosts)
        self._ranks = Follower(run_dir.ranks_jsonl)
        self._signals = FolderFollower(run_dir.signals, place_of)
        self._decoder = SignalDecoder()
        self._rank_of: dict[str, int] = {}
        self._at_tail = False
        self._passed: set[str] = set()

    @property
    def bad_lines(self) -> Counter[str]:
        """Lines, and files, that could not be read, by reason."""
        return self._decoder.bad_lines + self._signals.skipped + self._ranks.skipped

    @property
    def last_problem(self) -> str | None:
        """The newest trouble in words for people, "file:line: reason"."""
        return self._decoder.last_problem or self._signals.last_problem or self._ranks.last_problem

    @property
    def not_read(self) -> tuple[str, ...]:
        """The same in words, one phrase a reason: how many, and where the last of them is."""
        return not_read_in_words(self.bad_lines, self.where)

    @property
    def where(self) -> Mapping[str, str]:
        """Of each reason where it was met last, as far as that is known."""
        where = {**self._ranks.skipped.where, **self._signals.skipped.where, **self._decoder.where}
        return {reason: self._shown(at) for reason, at in where.items()}

    @property
    def is_there(self) -> bool:
        """Whether there is any signal file, opened or not."""
        return bool(self._signals.paths())

    @property
    def files(self) -> int:
        """How many signal files are followed."""
        return self._signals.files

    @property
    def lag_bytes(self) -> int:
        """Bytes that were seen and not read yet."""
        return self._signals.lag_bytes

    @property
    def read_bytes(self) -> int:
        """Bytes of all lines that were read; where it stands still, nothing was written."""
        return self._signals.read_bytes + self._ranks.read_bytes

    @property
    def left_out_bytes(self) -> int:
        """Bytes of the signal files that are not read at all, since reading began behind them."""
        return self._signals.left_out_bytes

    @property
    def caught_up(self) -> bool:
        """Whether the last poll read all that there was."""
        return self._signals.caught_up

    @property
    def host_of(self) -> Mapping[int, str]:
        """Where each rank runs, as far as is known."""
        return self._hosts.of

    def fold_into(self, fold: Folding, max_bytes: int = POLL_BYTES) -> list[Event]:
        """Fold what was written since the last poll, of a large backlog the next `max_bytes` or so.

        Gives the same as folding what `poll` says, in a small part of the time; lines of another rank in a
        rank's file are folded where they stand. Returns the events among it, in the order of the files.
        """
        self.place_ranks()
        events: list[Event] = []
        for block in self._signals.poll_blocks(max_bytes):
            rank = self._rank_in(block.file)
            if self._at_tail and block.since and block.file not in self._passed:
                self._pass_gap(block, rank)
            for run in runs(block.data, rank) if self._concerns(rank, block.data) else ():
                events += self._fold_run(fold, block, run, rank)
        return events

    def _pass_gap(self, block: Block, rank: int) -> None:
        """Behind lines that were left out a later start may have put the rank on another host."""
        self._passed.add(block.file)
        told = _ATTEMPT.search(block.data, 0, _LONGEST_LINE_BYTES)
        self._hosts.behind_gap(rank, int(told[1]) if told else 0)

    def _concerns(self, rank: int, data: bytes) -> bool:
        """A rank of other hosts that starts again may do so on one of ours."""
        return self._hosts.is_wanted(self._hosts.of.get(rank)) or _STARTS in data

    def _fold_run(self, fold: Folding, block: Block, run: Run, rank: int) -> Iterator[Event]:
        host, number = self._hosts.of.get(rank), block.number + run.place
        if run.plain is not None and self._hosts.is_wanted(host):
            last_line = Line(block.file, number + len(run.lines) - 1, run.lines[-1], block.since)
            source = self._shown(last_line.place)
            last = self._decoder.decode(run.lines[-1], source, rank=rank, host=host)
            if isinstance(last, Step):
                fold.add_stretch(Stretch(run.plain[:-1], last))
                return
        for place, data in enumerate(run.lines, number):
            fact = self._fact(Line(block.file, place, data, block.since))
            if fact is not None:
                fold.add(fact)
                if isinstance(fact, Event):
                    yield fact

    def poll(self, max_bytes: int = POLL_BYTES) -> list[Fact]:
        """What was written since the last poll; of a large backlog the next `max_bytes` or so."""
        self.place_ranks()
        keyed: list[tuple[float, Fact]] = []
        newest: dict[int, float] = {}
        for line in self._signals.poll(max_bytes):
            fact = self._fact(line)
            if fact is None:
                continue
            # A clock that steps back must not put a rank's later lines before its earlier ones.
            rank = -1 if fact.rank is None else fact.rank
            key = max(fact.t, newest.get(rank, fact.t))
            newest[rank] = key
            keyed.append((key, fact))
        keyed.sort(key=lambda pair: pair[0])
        return [fact for _, fact in keyed]

    def _rank_in(self, file: str) -> int:
        rank = self._rank_of.get(file)
        if rank is None:
            rank = self._rank_of[file] = rank_in(file)
        return rank

    def _fact(self, line: Line) -> Step | Event | None:
        rank = self._rank_in(line.file)
        host = self._hosts.of.get(rank)
        wanted = self._hosts.is_wanted(host)
        if not wanted and _STARTS not in line.data:
            return None
        fact = self._decoder.decode(line.data, self._shown(line.place), rank=rank, host=host)
        if fact is not None and fact.rank is not None and fact.rank != rank:  # a line of another rank
            fact = dataclasses.replace(fact, host=self._hosts.of.get(fact.rank))
        if isinstance(fact, Event) and fact.name == "run_start" and fact.host and fact.rank is not None:
            self._hosts.started(fact.rank, fact.host, fact.attempt)
            wanted = self._hosts.is_wanted(fact.host)
        return fact if wanted else None

    def _shown(self, file: str) -> str:
        """A file's name, or "file:line", as seen from the run directory."""
        return file.removeprefix(f"{self._run_dir.path}/")

    def place_ranks(self) -> None:
        """Learn where each rank runs from what is new in ranks.jsonl; every poll does it."""
        for line in self._ranks.poll():
            told = self._decoder.place(line.data, f"ranks.jsonl:{line.number}")
            if told is not None and told[1] is not None:
                self._hosts.placed(told[0], told[1])

    def begin_at_tail(self, whole_bytes: int) -> None:
        """Read signal files that are together larger than this only at their ends, and the first lines.

        Call it before the first poll; files that come later are read whole.
        """
        self._signals.begin(Start((), whole_bytes, _STARTS))
        self._at_tail = True

    def memory(self) -> FilesMemory:
        """What another reader must know to go on from here; of use once `caught_up`."""
        return FilesMemory(
            FollowerMemory.of(self._signals),
            FollowerMemory.of(self._ranks),
            Counted.of(self._decoder.bad_lines, self._decoder.where),
            dict(self._hosts.of),
        )

    def resume(self, memory: FilesMemory) -> bool:
        """Go on from there, before the first poll; False, and nothing done, where its files are not these."""
        if not memory.fits(self._signals):
            return False
        memory.signals.recall(self._signals)
        memory.ranks.recall(self._ranks)
        memory.bad_lines.recall(self._decoder.bad_lines, self._decoder.where)
        self._hosts.of.update(memory.host_of)
        return True

    def give_up_tails(self) -> None:
        """Count what stands behind the last newline of each signal file as torn."""
        self._signals.give_up_tails()

    def close(self) -> None:
        self._signals.close()
        self._ranks.close()


def _allow_many_files() -> None:
    """A thousand ranks are a thousand open files, and the usual soft limit is 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
