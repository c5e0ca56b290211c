"""What did the ranks of a long run tell up to a moment in the past?

Of each rank its first lines and its last ones before that moment, found by halves: the lines of a file are in
the order of time. Where the moment lies is asked of the first rank by its own clock, and of the others by the
steps that it had come to, since their hosts' clocks may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from train_ledger.facts import Event, Fact, Step
from train_ledger.run_dir import RunDir
from train_ledger.slow.table.cut import AfterStep, AfterTime
from train_ledger.slow.table.files import RankFiles
from train_ledger.sources import SignalDecoder

__all__ = ["facts_before"]

_HEAD_BYTES = 4096
_SMALLEST_SHARE_BYTES = 24 << 10
_BEHIND_BYTES = 12 << 10
_STEPS_BEHIND = 2


def facts_before(run_dir: RunDir, t: float, whole_bytes: int) -> list[Fact]:
    """The facts of all ranks that are needed to know how the run stood at `t` (unix s), and a few later ones.

    About `whole_bytes` are read, whatever the length of the run. A file that cannot be read tells nothing.
    """
    paths = _paths(run_dir)
    share = max(_SMALLEST_SHARE_BYTES, whole_bytes // max(1, len(paths)))
    cut: AfterTime | AfterStep = AfterTime(t)
    found: list[tuple[float, Fact]] = []
    for rank, files in sorted(paths.items()):
        try:
            told = list(_of_rank(rank, files, cut, share))
        except OSError:
            continue
        found += told
        steps = [fact for _, fact in told if isinstance(fact, Step) and fact.t <= t]
        if isinstance(cut, AfterTime) and steps:
            cut = AfterStep(steps[-1].attempt, steps[-1].step + _STEPS_BEHIND)
    found.sort(key=lambda pair: pair[0])
    return [fact for _, fact in found]


def _of_rank(
    rank: int, paths: list[Path], cut: AfterTime | AfterStep, share: int
) -> Iterator[tuple[float, Fact]]:
    """Each fact with the time that it is sorted by: no line comes before an earlier one of its rank."""
    decoder, host, newest = SignalDecoder(), None, float("-inf")
    with RankFiles(paths) as files:
        end = files.line_start(min(files.whole_end(), files.end_before(cut.is_beyond) + _BEHIND_BYTES))
        start = files.line_start(max(0, end - share))
        head = files.line_start(min(_HEAD_BYTES, start))
        text = files.read(0, head) + files.read(max(head, start), end)
    for line in text.splitlines():
        fact = decoder.decode(line, rank=rank, host=host)
        if isinstance(fact, Event) and fact.name == "run_start" and fact.host:
            host = fact.host
        if fact is not None:
            newest = max(newest, fact.t)
            yield newest, fact


def _paths(run_dir: RunDir) -> dict[int, list[Path]]:
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
