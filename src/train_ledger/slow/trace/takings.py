"""Which traces of a folder belong together?

A run's folder of traces holds one folder a taking, torchtitan's one an iteration, and a profiler that writes
every so many steps leaves all its files in one. Only traces of the same steps can be laid side by side, so
where ranks are there more than once the newest taking is chosen.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Chosen", "newest_taking", "rank_in_name"]

_RANK = re.compile(r"(?:rank|worker)[-_ ]?(\d{1,7})(?!\d)", re.IGNORECASE)
_TAKING = re.compile(r"(taken-|scheduled-|(?:iteration|iter|step)[-_]?)(\d{1,19})", re.IGNORECASE)
_TIME = re.compile(r"\.(\d{10,19})(?=\.)")


class Chosen(NamedTuple):
    """The files, and which others are left out and how to see them; "" where none are."""

    files: list[Path]
    remark: str = ""


def rank_in_name(name: str) -> int | None:
    """The rank that a file's name says it is of; of several the last.

    >>> rank_in_name("run.rank-3.json"), rank_in_name("rank0_trace.json"), rank_in_name("trace.json")
    (3, 0, None)
    """
    found = _RANK.findall(name)
    return int(found[-1]) if found else None


def newest_taking(root: Path, files: Sequence[Path]) -> Chosen:
    """All of these traces below `root` where each is of another rank, else those of the newest taking."""
    of_folder: dict[Path, list[Path]] = defaultdict(list)
    for file in files:
        of_folder[_folder(root, file)].append(file)
    ranks = {folder: {_worker(root, file) for file in inside} for folder, inside in of_folder.items()}
    remarks = []
    if sum(map(len, ranks.values())) > len(set().union(*ranks.values())):
        newest = _newest(of_folder)
        others = sorted(str(folder.relative_to(root)) for folder in of_folder if folder != newest)
        of_folder = {newest: of_folder[newest]}
        remarks.append(_of_others(str(newest.relative_to(root)), others))
    found = [file for inside in of_folder.values() for file in _newest_of_each(root, inside)]
    if len(found) < sum(map(len, of_folder.values())):
        remarks.append("several traces of a rank are in one folder, the newest of each is taken")
    return Chosen(sorted(found), "; ".join(remarks))


def _folder(root: Path, file: Path) -> Path:
    """The folder of the taking that a file is of: one that is called so, else that in which it lies."""
    inside = [it for it in file.parents if it != root and root in it.parents]
    return next((it for it in inside if _TAKING.match(it.name)), file.parent)


def _worker(root: Path, file: Path) -> object:
    """What tells the files of one rank from those of another: the rank that its path says, else its name."""
    told = rank_in_name(file.name)
    if told is not None:
        return told
    told = rank_in_name(str(file.parent.relative_to(root)))
    return told if told is not None else _TIME.sub("", _TAKING.sub("", file.name))


def _newest(of_folder: Mapping[Path, Sequence[Path]]) -> Path:
    """By the numbers in their names where all have one of a kind, else by when their files were written."""
    named = {folder: _TAKING.match(folder.name) for folder in of_folder}
    kinds = {it[1][:4].lower().replace("take", "sche") if it else None for it in named.values()}
    if len(kinds) == 1 and None not in kinds:
        return max(of_folder, key=lambda folder: (_number(named[folder]), folder))
    return max(of_folder, key=lambda folder: (max(map(_written, of_folder[folder])), folder))


def _newest_of_each(root: Path, files: Sequence[Path]) -> list[Path]:
    of_worker: dict[object, list[Path]] = defaultdict(list)
    for file in files:
        of_worker[_worker(root, file)].append(file)
    return [_newest_of(listed) for listed in of_worker.values()]


def _newest_of(files: Sequence[Path]) -> Path:
    for pattern in (_TIME, _TAKING):
        found = {file: pattern.search(file.name) for file in files}
        if all(found.values()):
            return max(files, key=lambda file: (_number(found[file]), file))
    return max(files, key=lambda file: (_written(file), file))


def _number(found: re.Match[str] | None) -> int:
    return int(found[found.re.groups]) if found else -1


def _written(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _of_others(newest: str, others: Sequence[str]) -> str:
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    listed = ", ".join(others[-3:])
    return (
        f"{newest} is the newest of {len(others) + 1} takings in it; name another to see it: {listed}{more}"
    )
