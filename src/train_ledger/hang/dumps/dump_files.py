"""Which files are the dumps, of which rank and of which attempt?

The rank is the last integer of a file's name, whatever the prefix; a host may stand before it. Nothing is
left out silently: what is no dump, what is older than the hang and what a newer dump of the same rank
replaces is listed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from train_ledger.answer import Unreadable
from train_ledger.config import Limits
from train_ledger.hang.dumps.dump import Dump
from train_ledger.hang.dumps.group_table import MOST_RANKS
from train_ledger.hang.dumps.readers import read_all
from train_ledger.hang.dumps.worker import Job

__all__ = [
    "Dumps",
    "first_in",
    "host_of",
    "jobs_in",
    "listed",
    "rank_of",
    "read_dumps",
    "shown",
    "why_no_rank",
]

_CLOCKS_DIFFER_NS = 60 * 10**9
_LONG_AGO_NS = 3600 * 10**9


@dataclass(frozen=True, slots=True)
class Dumps:
    """The dumps to reason over, one a rank, by rank; and everything that was found beside them.

    `damaged` are ranks of which there is something, by its name a dump, that could not be read; `set_aside`
    those whose dumps are all of another time.
    """

    dumps: tuple[Dump, ...]
    unreadable: tuple[Unreadable, ...] = ()
    damaged: tuple[int, ...] = ()
    stale: tuple[str, ...] = ()
    set_aside: tuple[int, ...] = ()

    def without(self, ranks: Collection[int]) -> Dumps:
        """The dumps of these ranks are found to be of another time, and listed as stale."""
        kept = tuple(dump for dump in self.dumps if dump.rank not in ranks)
        left = [dump for dump in self.dumps if dump.rank in ranks]
        stale = tuple(sorted({*self.stale, *(dump.file for dump in left)}))
        aside = tuple(sorted({*self.set_aside, *(dump.rank for dump in left)}))
        return replace(self, dumps=kept, stale=stale, set_aside=aside)


_SUFFIX = re.compile(r"\.(?:json|jsonl|pickle|pkl|bin|txt|log|dump|trace)\Z", re.IGNORECASE)
_RANK = re.compile(r"(\d+)\D*\Z")
_HOST = re.compile(r"rank[_-](?P<host>[A-Za-z][\w.-]*?)[_-]\d+\Z")


def rank_of(name: str) -> int | None:
    """The rank in a file's name: its last integer, suffixes aside.

    >>> rank_of("nccl_trace_rank_node-00_12.json"), rank_of("rank_5"), rank_of("notes.txt")
    (12, 5, None)
    """
    found = _RANK.search(_SUFFIX.sub("", name))
    rank = int(found[1]) if found and len(found[1]) < 20 else MOST_RANKS
    return rank if rank < MOST_RANKS else None


def why_no_rank(name: str, rule: str = "a dump's name ends in its rank, as rank_5") -> str:
    """In words, for a name of which `rank_of` makes nothing."""
    if _RANK.search(_SUFFIX.sub("", name)):
        return f"the number in its name is no rank: {MOST_RANKS} or more"
    return f"no rank in its name: {rule}"


def host_of(name: str) -> str | None:
    """The host in a file's name, as in nccl_trace_rank_node-00_12; None where there is none."""
    found = _HOST.search(_SUFFIX.sub("", name))
    return found["host"] if found else None


def read_dumps(paths: Sequence[Path], limits: Limits, since_t: float | None = None) -> Dumps:
    """Read every dump under `paths`, files or folders; the limits hold for each file.

    A dump whose file and newest entry are both from before `since_t` (unix seconds) is stale.
    """
    jobs, sizes, refused = jobs_in(paths, limits)
    read: list[Dump] = []
    unreadable = []
    for job, reply in zip(jobs, read_all(jobs, sizes, limits), strict=True):
        if reply.dump is None:
            refused[Path(os.fsdecode(job.path))] = reply.why or "not read"
        else:
            read.append(reply.dump)
            if reply.dump.cut:
                unreadable.append(Unreadable(reply.dump.file, reply.dump.cut))
    unreadable += [Unreadable(shown(path), why) for path, why in refused.items()]
    kept, stale = _told_apart(read, since_t)
    ranks = {dump.rank for dump in kept}
    damaged = tuple(sorted(_damaged(refused, read) - ranks))
    set_aside = tuple(sorted({dump.rank for dump in read} - ranks))
    return Dumps(kept, tuple(sorted(unreadable, key=_by_file)), damaged, stale, set_aside)


def jobs_in(paths: Sequence[Path], limits: Limits) -> tuple[list[Job], list[int], dict[Path, str]]:
    """The files to be read with their sizes in bytes, and why others are not even opened."""
    jobs, sizes, refused = [], [], {}
    for path, why in sorted(listed(paths).items()):
        found = why or _job(path, limits)
        if isinstance(found, str):
            refused[path] = found
        else:
            jobs.append(found[0])
            sizes.append(found[1])
    return jobs, sizes, refused


def _by_file(entry: Unreadable) -> str:
    return entry.file


def _damaged(refused: Iterable[Path], read: Iterable[Dump]) -> set[int]:
    """The ranks of what was refused, where its name is that of a dump: train_7.log is none of rank 7.

    A hidden file names none: what a writer that was killed leaves, .rank_0.k2vq8085, ends in chance digits.
    """
    stems = {_stem(Path(dump.file).name) for dump in read}
    names = [path.name for path in refused if not path.name.startswith(".")]
    named = [name for name in names if "rank" in name.lower() or _stem(name) in stems]
    return {rank for name in named if (rank := rank_of(name)) is not None}


def _stem(name: str) -> str:
    return _RANK.sub("", _SUFFIX.sub("", name))


def first_in(folder: Path, most: int) -> Iterator[Path]:
    """The first `most` that the system lists in a folder, in its order: there may be a million."""
    with os.scandir(folder) as entries:
        for _, entry in zip(range(most), entries, strict=False):
            yield Path(entry.path)


def listed(paths: Iterable[Path]) -> dict[Path, str | None]:
    """The files named or in the folders named; with the reason, a folder that cannot be listed."""
    found: dict[Path, str | None] = {}
    for path in paths:
        try:
            found.update(dict.fromkeys(path.iterdir() if os.path.isdir(path) else [path]))
        except OSError as error:
            found[path] = error.strerror or str(error)
    return found


def shown(path: Path) -> str:
    """The path as text that can be printed, whatever bytes are in it."""
    return os.fsencode(path).decode("utf-8", "replace")


def _job(path: Path, limits: Limits) -> tuple[Job, int] | str:
    """What a reader is asked to do, and the size; or why the file is not even opened."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        return getattr(error, "strerror", None) or str(error)
    if stat.S_ISDIR(status.st_mode):
        return "a folder in the folder: name it to have its dumps read"
    if not stat.S_ISREG(status.st_mode):
        return "no regular file"
    if path.name.startswith("."):
        return "hidden or unfinished file"
    rank = rank_of(path.name)
    if rank is None:
        return why_no_rank(path.name)
    if status.st_size > limits.dump_bytes:
        return f"refused: {status.st_size} bytes, more than the {limits.dump_bytes} allowed"
    return Job(os.fsencode(path), rank, host_of(path.name), status.st_mtime), status.st_size


def _told_apart(read: Sequence[Dump], since_t: float | None) -> tuple[tuple[Dump, ...], tuple[str, ...]]:
    """The newest dump of each rank of the current attempt, and the files of the others."""
    before = {dump.file for dump in read if since_t is not None and _is_before(dump, since_t)}
    stale = [*before]
    newest: dict[int, Dump] = {}
    for dump in sorted(read, key=lambda dump: (dump.newest_ns, dump.has_frames, dump.mtime, dump.file)):
        if dump.file in before:
            continue
        if dump.rank in newest:
            stale.append(newest[dump.rank].file)
        newest[dump.rank] = dump
    left_over = _left_over(list(newest.values()))
    stale.extend(newest.pop(rank).file for rank in left_over)
    return tuple(newest[rank] for rank in sorted(newest)), tuple(sorted(stale))


def _is_before(dump: Dump, since_t: float) -> bool:
    return dump.mtime < since_t and dump.newest_ns < since_t * 1e9


def _left_over(dumps: Sequence[Dump]) -> list[int]:
    """Ranks whose dump ends before most others begin: it is of an earlier attempt.

    Where the others' rings have wrapped their beginnings are lost, and an hour must lie between.
    """
    timed = [dump for dump in dumps if dump.newest_ns > 0]
    beginnings = sorted(dump.oldest_ns for dump in timed)
    if len(beginnings) < 3:
        return []
    median = beginnings[len(beginnings) // 2]
    gap = _LONG_AGO_NS if any(dump.wrapped or dump.active_only for dump in timed) else _CLOCKS_DIFFER_NS
    return [dump.rank for dump in timed if dump.newest_ns + gap < median]
