"""Which files hold the stacks, and of which ranks?

One file a rank, the rank in its name as in rank_5.txt; or one file for many, as torch.distributed.debug and
`train-ledger stacks --json --full` write them. What was not read is listed.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable
from pathlib import Path

from train_ledger.answer import Unreadable
from train_ledger.hang.dumps.attempts import latest_attempts
from train_ledger.hang.dumps.dump_files import host_of, listed, rank_of, shown, why_no_rank
from train_ledger.hang.dumps.pickles import RefusedError, open_regular
from train_ledger.hang.stacks.rank_sections import RankStack, of_debug_server, of_ourselves, says_several
from train_ledger.hang.stacks.stack_formats import Thread, threads_in
from train_ledger.headway import counted

__all__ = ["RankStack", "Thread", "read"]

_FILE_BYTES = 32 << 20
_BYTES_OF_ALL_RANKS = 1 << 30
_BEGINNING_BYTES = 1 << 16


def read(paths: Iterable[Path]) -> tuple[dict[int, RankStack], list[Unreadable]]:
    """The stacks in files and folders by rank, and what could not be read.

    Of several files of one rank the newest counts, and py-spy's before faulthandler's of about the same time;
    of a folder with several attempts in it the latest.
    """
    stacks: dict[int, RankStack] = {}
    named, unreadable = latest_attempts(paths, empty_ones_count=False)
    files = {path: why for path, why in listed(named).items() if path in named or _may_hold_one(path)}
    for path in counted(sorted(files, key=_age), "reading stacks", "files"):
        try:
            found, unread = _read(path, files[path])
        except RefusedError as error:
            unreadable.append(Unreadable(shown(path), str(error)))
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
            unreadable.append(Unreadable(shown(path), getattr(error, "strerror", None) or str(error)))
        else:
            stacks.update({stack.rank: stack for stack in found})
            unreadable += unread
    return dict(sorted(stacks.items())), unreadable


def _may_hold_one(path: Path) -> bool:
    """Every rank keeps an empty rank_N.txt open, for its last stack should it be killed by a signal."""
    if path.suffix == ".txt" and os.path.isfile(path):
        return _size(path) != 0
    return not os.path.isdir(path)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


_ABOUT_THE_SAME_S = 30.0


def _age(path: Path) -> tuple[float, str]:
    try:
        more_telling_s = _ABOUT_THE_SAME_S if path.suffix == ".json" else 0.0
        return path.stat().st_mtime + more_telling_s, str(path)
    except (OSError, ValueError):
        return 0.0, str(path)


def _read(path: Path, why: str | None) -> tuple[list[RankStack], list[Unreadable]]:
    if why:
        raise RefusedError(why)
    with open_regular(path) as file:
        beginning = file.read(_BEGINNING_BYTES).removeprefix(codecs.BOM_UTF8)
        if not says_several(beginning):
            rank = rank_of(path.name)
            if rank is None:
                raise RefusedError(why_no_rank(path.name, "a stack's name ends in its rank, as rank_5.txt"))
            return [_of_one(path, rank, beginning + file.read(_FILE_BYTES + 1))], []
        data = beginning + file.read(_BYTES_OF_ALL_RANKS + 1)
    if len(data) > _BYTES_OF_ALL_RANKS:
        raise RefusedError(f"refused: more than {_BYTES_OF_ALL_RANKS >> 20} MiB, too long for stacks")
    if data.lstrip()[:1] == b"{":
        said = of_ourselves(data)
        return [*said.stacks], [*said.unread]
    found, unread = of_debug_server(data, shown(path))
    if not found and not unread:
        raise RefusedError("no stack in it")
    return found, unread


def _of_one(path: Path, rank: int, data: bytes) -> RankStack:
    if len(data) > _FILE_BYTES:
        raise RefusedError(f"refused: more than {_FILE_BYTES >> 20} MiB, too long for a stack")
    pid, threads = threads_in(data)
    if not threads:
        raise RefusedError("no stack in it" if data.strip() else "empty file")
    return RankStack(rank, pid, host_of(path.name), threads)
