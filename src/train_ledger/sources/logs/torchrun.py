"""Whose is a log file, and how did the launcher say that its ranks ended?

torchrun --log-dir writes RUN_ID/attempt_N/LOCAL_RANK/stderr.log; others put the rank into the file's name.
At the end the agent prints how each of its ranks ended, and which failed first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from train_ledger.sources.lines.log_time import log_time

__all__ = ["MARKS", "Ended", "Epilogue", "LogPlace", "place_of"]


@dataclass(frozen=True, slots=True)
class LogPlace:
    """What a path says of its log; None for what it does not. `local_rank` counts on its host."""

    rank: int | None = None
    local_rank: int | None = None
    attempt: int | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a rank ended, by the launcher's epilogue: `code` as Popen gives it (-9: killed by signal 9).

    `first` says that the launcher saw it fail before the others. `t` is unix seconds.
    """

    rank: int
    code: int
    host: str | None = None
    first: bool = False
    source: str = ""
    pid: int | None = None
    local_rank: int | None = None
    t: float | None = None


MARKS: tuple[bytes, ...] = (b"rank      :", b"exitcode  :", b"Root Cause", b"host      :", b"Failures:")

_ATTEMPT = re.compile(r"attempt_(\d{1,6})")
_RANK_IN_NAME = re.compile(
    r"(?:^|(?<!local)(?<!node)(?<!host)(?<!group)(?<!(?<![a-z])[tpdce]p)[._-])(?:global_)?rank[._-]?(\d{1,7})(?=\D|$)",
    re.IGNORECASE | re.ASCII,
)
"""That of a node, within a host or within a group of ranks is another one's global rank."""
_LOCAL_NAMES = ("stdout.log", "stderr.log", "error.json")
_KERNEL = re.compile(r"(?P<host>.{1,255})\.kern\.log\Z|(?P<other>.{1,255})[._-]dmesg(?:\.\w+)?\Z")


def place_of(path: PurePath) -> LogPlace:
    """What the path of a log says; the rank is global where it stands in a name, local below attempt_N.

    >>> place_of(PurePath("logs/r42/attempt_0/3/stderr.log"))
    LogPlace(rank=None, local_rank=3, attempt=0, host=None)
    >>> place_of(PurePath("logs/rank_12.log")).rank
    12
    """
    parts = path.parts
    attempts = [int(match[1]) for part in parts if (match := _ATTEMPT.fullmatch(part))]
    local = parts[-2] if path.name in _LOCAL_NAMES and len(parts) > 1 else ""
    named = _RANK_IN_NAME.search(path.name) or (_RANK_IN_NAME.search(local) if local else None)
    kernel = _KERNEL.match(path.name)
    return LogPlace(
        int(named[1]) if named else None,
        int(local) if local.isdecimal() and len(local) < 5 and not named else None,
        attempts[-1] if attempts else None,
        (kernel["host"] or kernel["other"]) if kernel else None,
    )


_FRONT = r"(?P<front>\s{0,8}\d{1,6}: |[A-Za-z0-9][\w.-]{0,80}: |)"
"""What srun -l or pdsh puts in front; the tables of several agents may be woven into each other."""
_HEAD = re.compile(rf"{_FRONT}(?P<head>(?:Other )?Failures:|Root Cause)")
_FIELD = re.compile(
    rf"{_FRONT}\s{{0,8}}(?P<name>time|host|rank|exitcode)\s{{0,12}}: (?P<value>\S{{1,255}})"
    r"(?: \((?:local_rank|pid): (?P<number>\d{1,10})\))?"
)
_MOST_TABLES = 4096


class _Table:
    """What was read of one agent's table since its last entry was complete."""

    def __init__(self) -> None:
        self.root = False
        self.host: str | None = None
        self.rank: int | None = None
        self.local_rank: int | None = None
        self.t: float | None = None

    def field(self, name: str, value: str, number: int | None, source: str) -> Ended | None:
        """The entry that the field completes."""
        if name == "time":
            self.t = log_time(value.replace("_", " "))
        elif name == "host":
            self.host = value
        elif name == "rank":
            self.rank = int(value) if value.isdecimal() and len(value) < 8 else None
            self.local_rank = number
        elif self.rank is not None and number is not None and re.fullmatch(r"-?\d{1,9}", value):
            rank, self.rank = self.rank, None
            return Ended(rank, int(value), self.host, self.root, source, number, self.local_rank, self.t)
        return None


class Epilogue:
    """Reads the agents' tables of failures line by line; `ended` holds what is complete."""

    def __init__(self) -> None:
        self.ended: list[Ended] = []
        self._tables: dict[str, _Table] = {}

    def add(self, text: str, source: str = "") -> None:
        if head := _HEAD.match(text):
            self._table(head["front"]).root = head["head"] == "Root Cause"
        elif field := _FIELD.match(text):
            number = int(field["number"]) if field["number"] else None
            ended = self._table(field["front"]).field(field["name"], field["value"], number, source)
            if ended is not None:
                self.ended.append(ended)

    def _table(self, front: str) -> _Table:
        if len(self._tables) >= _MOST_TABLES:
            self._tables.clear()
        return self._tables.setdefault(front.strip(), _Table())
