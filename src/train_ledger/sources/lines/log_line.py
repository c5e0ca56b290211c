"""What stands in front of a line in a log, and what does it say of whose line it is?

Launchers and shells put ranks and hosts in front of lines, loggers put times there, terminals leave colours.
Every reader of log lines wants the text, and what the front says: the global rank from `[rank3]:` (torch,
and torchrun with its prefix template), the local one from `[default3]:` (torchrun --tee), rank and host from
`[node-07:3]:`, the host from `node-07: ` (pdsh), the time from `[E328 00:21:12.920872216` (glog; it has
neither year nor zone) or from what Docker and Kubernetes put there. The numbers of `3: ` (srun -l) and of
`[1,3]<stdout>:` (mpirun) are a task's, which may be a rank or a node's: they are taken off and not used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from train_ledger.sources.lines.log_time import log_time, time_without_year

__all__ = ["LogLine", "read_line"]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line without what stood in front; what its front does not say is None. `t` is unix seconds."""

    text: str
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    t: float | None = None


_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_NO_HOST = (
    r"(?![\w.-]{1,80}\.(?:py|pyx|cc?|cpp|cu|cuh|h|hpp|go|rs):)"
    r"(?!(?i:trace|debug|info|warn|warning|error|critical|fatal|rank|node|gpu|cuda|device|[pt]id|line|step):)"
)
"""`[train.py:88]:` is a place in a program, `[INFO:0]:` a level: neither says whose the line is."""
_IN_BRACKETS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[(?:rank|[Rr]ank:)(?P<rank>\d{1,7})\]:?[ ]?",
        r"\[\d{1,9},\d{1,7}\]<std(?:out|err|diag)>:[ ]?",
        r"\[default(?P<local_rank>\d{1,4})\]:[ ]?",
        rf"\[{_NO_HOST}"
        r"(?P<host>[A-Za-z][\w.-]{0,80}):(?P<rank>\d{1,7})\](?::[ ]?|[ ](?=\[))",
    )
)
_BARE = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<host>(?!\d{1,6}:)[A-Za-z0-9][\w.-]{0,80}):[ ]"
        r"(?=\[(?:rank|default|[EWIF]\d{0,4}[ ])|Traceback \(most)",
        r"\d{1,6}:[ ](?=\[(?:rank|default|[EWIF]\d{0,4}[ ])|Traceback \(most)",
    )
)
_OF_CONTAINER = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) "
    r"(?:std(?:out|err) [FP] )?(?!\S{1,255} kernel: )"
)
"""`kubectl logs --timestamps`, and the files below /var/log/pods; journalctl writes such times, too."""
_INSIDE = re.compile(r"\[rank(\d{1,7})\]:")
_STAMP = re.compile(r"[EWIF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,9})")
_MOST_FRONTS = 4


def read_line(data: bytes, written_t: float | None = None) -> LogLine:
    """The line taken apart; `written_t` is when its file was written last, for the year that stamps lack.

    >>> line = read_line(b"node-07: [rank4]:[E214 04:05:06.3 ProcessGroupNCCL.cpp:9] failure")
    >>> line.host, line.rank, line.text
    ('node-07', 4, '[E214 04:05:06.3 ProcessGroupNCCL.cpp:9] failure')
    >>> read_line(b"2026-02-03T04:05:06.25Z stderr F   step 3")
    LogLine(text='  step 3', rank=None, local_rank=None, host=None, t=1770091506.25)
    """
    text = data.lstrip(b"\0").decode("utf-8", "replace")  # NULs are of a truncation
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    found: dict[str, str] = {}
    stamped = _OF_CONTAINER.match(text)
    if stamped is not None:
        text = text[stamped.end() :]
    stripped = text.lstrip(" ")
    for _ in range(_MOST_FRONTS):
        match = _front(stripped)
        if match is None:
            break
        found = {**{key: value for key, value in match.groupdict().items() if value}, **found}
        text = stripped = stripped[match.end() :]
    if (
        "[rank" in text and "rank" not in found and (inside := _INSIDE.search(text))
    ):  # glued to a progress bar
        found["rank"] = inside[1]
        text = text[inside.end() :]
    t = _time(text, written_t)
    if t is None and stamped is not None:
        t = log_time(stamped[1])
    return LogLine(text, _number(found.get("rank")), _number(found.get("local_rank")), found.get("host"), t)


def _front(text: str) -> re.Match[str] | None:
    for front in _IN_BRACKETS if text.startswith("[") else _BARE:
        if match := front.match(text):
            return match
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None


def _time(text: str, written_t: float | None) -> float | None:
    """The stamp in the year in which the file was written, or the one before where that lies ahead."""
    match = _STAMP.search(text) if written_t is not None else None
    if match is None or written_t is None:
        return None
    month, day, hour, minute, second = (int(match[index]) for index in range(1, 6))
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    try:
        return time_without_year(written_t, month, day, hour, minute, second, float(f"0.{match[6]}"))
    except (OverflowError, ValueError, OSError):
        return None
