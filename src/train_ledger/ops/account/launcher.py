"""When did a launcher end the ranks or start them again, by the logs beside a run's own signals?

torchrun's agent and Slurm say so in a few lines of their own logs. Only lines in which one of their words
stands are looked at; the logs of ranks are left alone, since the ranks speak for themselves.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from train_ledger.facts import Event, Fact, Step
from train_ledger.ledger.accounts import Happened, Sign, signs_of
from train_ledger.run_dir import RunDir, read_small
from train_ledger.sources import FactReader
from train_ledger.sources.formats.system.launcher import Launcher
from train_ledger.sources.formats.system.slurm import Slurm
from train_ledger.sources.logs.torchrun import place_of

__all__ = ["launcher_signs"]

_MARKS = re.compile(b"|".join(re.escape(mark) for mark in (*Launcher.marks, *Slurm.marks)))
_LARGEST_BYTES = 64 << 20
_MOST_FILES = 1000
_EVENTS = frozenset({"restart", "process_end", "signal_sent"})


def launcher_signs(run_dir: RunDir) -> list[Sign]:
    """The signs that launchers give, in no order; a log that is too large or not to be read tells none."""
    facts = (fact for path in _logs(run_dir) for fact in _facts(path))
    return list(signs_of(told for fact in facts if (told := _told(fact)) is not None))


def _logs(run_dir: RunDir) -> Iterator[Path]:
    """The logs that are of no rank."""
    seen = 0
    for top in run_dir.log_folders():
        for folder, _, names in os.walk(top):
            for name in sorted(names):
                path = Path(folder, name)
                place = place_of(path)
                if place.rank is None and place.local_rank is None and not name.startswith("."):
                    seen += 1
                    if seen > _MOST_FILES:
                        return
                    yield path


def _facts(path: Path) -> Iterable[Fact]:
    try:
        data, written_t = read_small(path, limit_bytes=_LARGEST_BYTES), path.stat().st_mtime
    except OSError:  # gone, not ours, too large: the signals tell the run without it
        return []
    reader = FactReader(path.name, place_of(path), written_t=written_t)
    lines = b"\n".join(_marked(data))
    return [*reader.feed(lines + b"\n"), *reader.end()] if lines else []


def _marked(data: bytes) -> Iterator[bytes]:
    """The lines in which a mark stands."""
    at = 0
    while match := _MARKS.search(data, at):
        start = data.rfind(b"\n", 0, match.start()) + 1
        end = data.find(b"\n", match.end())
        end = len(data) if end < 0 else end
        yield data[start:end]
        at = end


def _told(fact: Fact) -> tuple[int, Happened] | None:
    """What a launcher says of the processes, with its time in microseconds; None for what is none of that."""
    if isinstance(fact, Step) or fact.t is None or not math.isfinite(fact.t):
        return None
    name = fact.name if isinstance(fact, Event) else fact.fault
    if isinstance(fact, Event) and name not in _EVENTS:
        return None
    happened = Happened(fact.t, name, fact.rank, fact.attempt, None, "", fact.details, fact.source)
    return round(fact.t * 1e6), happened
