"""What did the ranks of a long run tell up to a moment in the past?

Of each rank its first lines and its last ones before that moment, found by halves: the lines of a file are in
the order of time. Where the moment lies is asked of the first rank by its own clock, and of the others by the
steps that it had come to, since their hosts' clocks may differ.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from train_ledger.facts import Event, Fact, Step
from train_ledger.run_dir import RunDir
from train_ledger.slow.table.cut import AfterStep, AfterTime
from train_ledger.slow.table.files import Key, RankFiles
from train_ledger.sources import SignalDecoder

__all__ = ["Closely", "ends_after", "facts_before", "files_of_ranks"]

_HEAD_BYTES = 4096
_SMALLEST_SHARE_BYTES = 18 << 10
_NEAR_BYTES = 4 << 10
_BEHIND_BYTES = 6 << 10
_STEPS_BEHIND = 2
_ASKED_FOR_THEIR_END = 8
_ATTEMPT_BEFORE_BYTES, _ATTEMPT_AFTER_BYTES = 20 << 10, 8 << 10


@dataclass(frozen=True, slots=True)
class Closely:
    """How much is read: of each rank at least `each_bytes`, of `ranks` at least `own_bytes`.

    Of `ranks` what their attempt began with is read, too, wherever it stands: who they are. Of the others the
    first `head_bytes`.
    """

    each_bytes: int = _SMALLEST_SHARE_BYTES
    head_bytes: int = _HEAD_BYTES
    ranks: Collection[int] = field(default_factory=tuple)
    own_bytes: int = _SMALLEST_SHARE_BYTES

    def share(self, rank: int, share: int) -> int:
        """How many bytes at the end of a rank's files are read."""
        return max(self.own_bytes if rank in self.ranks else self.each_bytes, share)


def facts_before(run_dir: RunDir, t: float, whole_bytes: int, closely: Closely | None = None) -> list[Fact]:
    """The facts of all ranks that are needed to know how the run stood at `t` (unix s), and a few later ones.

    About `whole_bytes` are read, whatever the length of the run; `t` may be infinite: now. A file that cannot
    be read tells nothing.
    """
    paths, closely = files_of_ranks(run_dir), closely or Closely()
    share = whole_bytes // max(1, len(paths))
    cut: AfterTime | AfterStep = AfterTime(t)
    found: list[tuple[float, Fact]] = []
    for rank, files in sorted(paths.items()):
        try:
            told = list(_of_rank(rank, files, cut, closely.share(rank, share), closely))
        except OSError:
            continue
        found += told
        steps = [fact for _, fact in told if isinstance(fact, Step) and fact.t <= t]
        if isinstance(cut, AfterTime) and steps and not math.isinf(t):
            cut = AfterStep(steps[-1].attempt, steps[-1].step + _STEPS_BEHIND)
    found.sort(key=lambda pair: pair[0])
    return [fact for _, fact in found]


def ends_after(run_dir: RunDir, t: float) -> bool:
    """Whether one of the first ranks wrote a line after `t` (unix s) by its own clock."""
    for rank, paths in sorted(files_of_ranks(run_dir).items())[:_ASKED_FOR_THEIR_END]:
        try:
            with RankFiles(paths) as files:
                end = files.whole_end()
                lines = files.read(max(0, end - _HEAD_BYTES), end).splitlines()
        except OSError:
            continue
        facts = (SignalDecoder().decode(line, rank=rank) for line in lines[-1:])
        if any(fact is not None and fact.t is not None and fact.t > t for fact in facts):
            return True
    return False


def _of_rank(
    rank: int, paths: list[Path], cut: AfterTime | AfterStep, share: int, closely: Closely
) -> Iterator[tuple[float, Fact]]:
    """Each fact with the time that it is sorted by: no line comes before an earlier one of its rank."""
    decoder, host, newest = SignalDecoder(), None, float("-inf")
    with RankFiles(paths) as files:
        cut_end = files.end_before(cut.is_beyond, _NEAR_BYTES)
        end = files.line_start(min(files.whole_end(), cut_end + _BEHIND_BYTES))
        start = files.line_start(max(0, min(cut_end, end) - share))
        is_close = rank in closely.ranks
        head = files.line_start(min(_HEAD_BYTES if is_close else closely.head_bytes, start))
        tail = files.read(max(head, start), end)
        text = files.read(0, head) + (_attempt_head(files, head, start, tail) if is_close else b"") + tail
    for line in text.splitlines():
        fact = decoder.decode(line, rank=rank, host=host)
        if isinstance(fact, Event) and fact.name == "run_start" and fact.host:
            host = fact.host
        if fact is not None:
            newest = max(newest, fact.t)
            yield newest, fact


def _attempt_head(files: RankFiles, low: int, high: int, tail: bytes) -> bytes:
    """The first lines of the attempt that `tail` is of, where they stand between `low` and `high`."""
    fact = next((it for line in tail.splitlines() if (it := SignalDecoder().decode(line, rank=0))), None)
    if fact is None or not fact.attempt:
        return b""

    def is_of_it(line: Key) -> bool | None:
        return None if line.t is None else line.attempt >= fact.attempt

    about = files.end_before(is_of_it)
    begin = max(low, files.line_start(about - _ATTEMPT_BEFORE_BYTES))
    end = min(high, files.line_start(about + _ATTEMPT_AFTER_BYTES))
    return files.read(begin, end) if begin < end else b""


def files_of_ranks(run_dir: RunDir) -> dict[int, list[Path]]:
    """The files of each rank, the oldest first: `rank_00005.jsonl.2` is older than `.1`."""
    found: dict[int, list[Path]] = {}
    for rank, path in run_dir.signal_files():
        found.setdefault(rank, []).append(path)
    for files in found.values():
        files.sort(key=lambda path: -_age(path))
    return found


def _age(path: Path) -> int:
    last = path.name.rpartition(".")[2]
    return int(last) if last.isdecimal() else 0
