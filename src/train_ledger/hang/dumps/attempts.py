"""Of which attempt are the dumps in this folder?

A run directory keeps those of its first attempt in comm_traces/ and those of later ones in attempt_1,
attempt_2, … below (DESIGN.md). Who names such a folder means the hang that is there now: the latest attempt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from train_ledger.answer import Unreadable

__all__ = ["latest_attempts"]

_ATTEMPT = re.compile(r"attempt_(\d{1,9})\Z")


def latest_attempts(
    paths: Iterable[Path], *, empty_ones_count: bool = True
) -> tuple[list[Path], list[Unreadable]]:
    """The paths to read in the place of `paths`, and the attempts that are left out.

    Without `empty_ones_count` an attempt that left empty files alone is as one that left none.

    A path without folders of attempts in it stands for itself. Of the others, which may be those of several
    hosts, the latest attempt that left a file anywhere is taken.
    """
    by_path = {path: _attempts(path) for path in paths}
    files = {
        path: {number: _files(folder, empty_ones_count) for number, folder in {0: path, **attempts}.items()}
        for path, attempts in by_path.items()
        if attempts
    }
    latest = max((number for some in files.values() for number, found in some.items() if found), default=0)
    chosen: list[Path] = []
    left_out = []
    for path, attempts in by_path.items():
        if not attempts:
            chosen.append(path)
        elif latest == 0:
            chosen += files[path][0]
        elif latest in attempts:
            chosen.append(attempts[latest])
        left_out += [
            Unreadable(os.fspath(attempts.get(number, path)), _why(len(found), latest))
            for number, found in sorted(files.get(path, {}).items())
            if found and number != latest
        ]
    return chosen, left_out


def _why(count: int, latest: int) -> str:
    files = "1 file" if count == 1 else f"{count} files"
    return f"{files} of an earlier attempt than attempt_{latest}, not read; name the files to have them read"


def _attempts(path: Path) -> dict[int, Path]:
    try:
        named = ((_ATTEMPT.match(it.name), it) for it in path.iterdir())
        return {int(match[1]): it for match, it in named if match and it.is_dir() and int(match[1])}
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        return {}


def _files(folder: Path, empty_ones_count: bool) -> list[Path]:
    try:
        files = sorted(it for it in folder.iterdir() if not it.name.startswith(".") and not it.is_dir())
        return [it for it in files if empty_ones_count or it.lstat().st_size]
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        return []
