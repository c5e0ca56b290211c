"""What stands between the start of a line and what a trainer says in it: whose line, and of when?

`read_line` has taken off what launchers write. Trainers and their own loggers put more there: a time in
brackets, a rank (`[rank-7/8]`, Primus; `[Rank 0]`, DeepSpeed), srun a task, pdsh a host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import nan

from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_time import TIME, log_time

__all__ = ["Front", "after_front", "is_source_code", "read_front"]

_TIME = re.compile(TIME)
_RANK = re.compile(r"\[[Rr]ank[- ](\d{1,7})(?:/\d{1,7})?\]")
_HOST = re.compile(r"\s{0,8}([A-Za-z0-9][\w.-]{0,80}):\s")
_PIECE = re.compile(
    rf"\s{{0,8}}(?:\[{TIME}\]|{TIME}|\[[Rr]ank[- ]\d{{1,7}}(?:/\d{{1,7}})?\]:?|\[[A-Z]{{4,8}}\s{{0,3}}\]"
    r"|\[[\w.-]{1,80}:\d{1,6}(?::\w{1,40})?\]|\d{1,6}:(?=\s))(?:\s{0,2}[-:](?=\s))?\s?"
)
_MOST_PIECES = 6
_NO_HOSTS = frozenset({"INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL", "WARN", "FATAL", "stdout", "stderr"})
_CODE = re.compile(r"""["'`{}\\]|\bprint\(|^\s*(?:#|//)""")


@dataclass(frozen=True, slots=True)
class Front:
    """When (unix seconds, nan: not told), by whom and where; what is not told is None."""

    t: float
    rank: int | None
    host: str | None


def read_front(line: LogLine, front: str) -> Front:
    """What `front`, the part of the line's text before the trainer's words, and the line itself tell.

    >>> read_front(LogLine("", host="node-07"), "[rank-7/8][INFO ] [trainer.py:25] : ")
    Front(t=nan, rank=7, host='node-07')
    """
    stamp = _TIME.search(front)
    t = log_time(stamp[0]) if stamp else None
    rank = _RANK.search(front)
    host = _HOST.match(front)
    named = host[1] if host and not host[1].isdecimal() and host[1] not in _NO_HOSTS else None
    return Front(
        t if t is not None else line.t if line.t is not None else nan,
        line.rank if line.rank is not None else int(rank[1]) if rank else None,
        line.host or named,
    )


@lru_cache(4)  # several formats ask for the same line
def after_front(text: str) -> int:
    """Where the trainer's words begin, behind times, ranks, levels, files and tasks.

    >>> text = "0: [2026-02-03 04:05:06][INFO][train.py:12] - step 3"
    >>> text[after_front(text) :]
    'step 3'
    """
    at = 0
    for _ in range(_MOST_PIECES):
        piece = _PIECE.match(text, at)
        if piece is None:
            break
        at = piece.end()
    return at


def is_source_code(front: str) -> bool:
    """Whether what stands before the words is that of a program's text or a comment, not of a log.

    >>> is_source_code('    print(f"'), is_source_code("[default7]: ")
    (True, False)
    """
    return _CODE.search(front) is not None
