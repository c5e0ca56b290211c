"""What did the collective watchdog, the recorder's dump and the checks of collectives say in this line?

The lines of ProcessGroupNCCL (and of what was made after it: XCCL, HCCL), of its heartbeat monitor, of the
Flight Recorder's writer and of gloo, in the wordings of torch 1.9 to 2.13; torch's checks of collectives are
read by `collective_checks`. Two numbers are easily mixed up: `[rank4]:` in front is the global rank, and
`Rank 1]` inside is the rank within the process group. Sequence numbers count per group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from train_ledger.sources.lines.log_line import LogLine, read_line
from train_ledger.sources.logs.collective_checks import CHECK_MARKS, FIELD, said_by_checks, whole
from train_ledger.sources.logs.said import Said

__all__ = ["MARKS", "peer_gone", "said_by", "said_in"]

MARKS: tuple[bytes, ...] = (
    b"Watchdog caught collective",
    b"detected by watchdog at work",
    b"Timeout at NCCL work",
    b"dump signal",
    b"start to dump the debug info",
    b"preparing to dump debug info",
    b"ecorder trace successfully dumped",
    b"ecorder debug info",
    b"NCCLPG debug info",
    b"ecorder dump in heartbeatMonitor",
    b"watchdog got stuck",
    b"Heartbeat monitor timed out",
    b"Could not acquire GIL",
    b"should dump",
    b"TCPStore",
    b"taking the entire process down",
    b"TORCH_NCCL_",
    b"TORCH_FR_",
    b"NCCL_ASYNC_ERROR_HANDLING",
    b"cannot write its dump",
    b"may not write there",
    *CHECK_MARKS,
    b"Connection closed by peer",
    b"Connection reset by peer",
    b"pair closure",
    b"Timed out waiting",
)
"""One of these stands in every line that says something here; a quick look before the slow one."""

_GROUP = re.compile(
    r"\[PG (?:ID )?(?P<id>[^\s\]()]{1,200})(?: PG GUID (?P<guid>[^\s\](]{1,200}))?[ ]?"
    r"(?:\((?P<desc>[^)\]]{0,200})\))? Rank (?P<rank>\d{1,7})\]"
)
_IN_GROUP = re.compile(r"\[Rank (\d{1,7})\]")
_WORK = re.compile(
    r"Watchdog caught collective operation timeout: Work\w*\((.{0,2000}?)\) ran for (\d{1,15}) "
)
_AT_WORK = re.compile(r"(?:Timeout at NCCL work|detected by watchdog at work(?: sequence id)?): (\d{1,18})")
_LAST = re.compile(r"last (enqueued|started|completed)(?: NCCL)? work: (-?\d{1,18})", re.IGNORECASE)
_ASKED = re.compile(
    r"Received a (?:dump signal|timeout signal|global timeout)|Observed flight recorder dump signal"
)
_ASKED_BY = re.compile(r"from\s+rank (-?\d{1,7})")
_DONE = re.compile(
    r"ecorder trace successfully dumped|Finished flight recorder successfully"
    r"|Finished writing (?:Flight Recorder|NCCLPG) debug info to (?P<file>\S{1,1000})"
)
_FAILED = re.compile(
    r"Error (?:opening file for writing|writing|flushing) (?:Flight Recorder|NCCLPG) debug info"
    r"(?: to file)?: (?P<file>\S{1,1000})"
)
_NO_FOLDER = re.compile(
    r"""(?<![^\s"'])(?P<file>/[^\s"']{0,1000}): """
    r"(?:no such folder, so rank \d+ cannot write|rank \d+ may not write)"
)
_SETTING = re.compile(
    r"\b(?P<name>(?:TORCH_)?NCCL_ASYNC_ERROR_HANDLING|TORCH_NCCL_DUMP_ON_TIMEOUT|TORCH_NCCL_ENABLE_MONITORING"
    r"|TORCH_NCCL_TRACE_BUFFER_SIZE|TORCH_FR_BUFFER_SIZE)(?: \([^)]{0,120}\))?(?:=|: )(?P<value>\w{1,12})\b"
)
_STORE = (
    "Failed to check the",
    "Failed to get timeout rank ID",
    "Failed to set dump signal",
    "recvValue",
    "recvVector",
    "sendBytes",
    "sendValue",
    "waitForInput",
)
_PEER = re.compile(r"Connection (?:closed|reset) by (?:remote )?peer(?P<whom> \[)?|caused pair closure")
_OF_COLLECTIVES = re.compile(r"gloo|pair\.cc|NCCL|c10d|Socket|Store|Read error|Application timeout")
"""Without one of these words, or whom it was connected to, the connection is another program's."""
_GLOO = re.compile(r"Timed out waiting (\d{1,12}) ?ms for (?:\w+ )?(send|recv)")


def said_in(
    data: bytes, *, rank: int | None = None, written_t: float | None = None, source: str = ""
) -> tuple[Said, ...]:
    """The statements of one line; empty for one that says nothing of this kind. Never raises.

    `rank` is that of the file, which holds where the line has none in front; `written_t` as in `read_line`.

    >>> line = b"[rank4]: [PG ID 5 PG GUID 41 Rank 0] Timeout at NCCL work: 12, last enqueued NCCL work: 13"
    >>> [(it.kind, it.rank, it.rank_in_group, it.group, it.seq, it.last_enqueued) for it in said_in(line)]
    [('failure', 4, 0, '41', 12, 13)]
    """
    if not any(mark in data for mark in MARKS):
        return ()
    return said_by(read_line(data, written_t), rank=rank, source=source)


def said_by(line: LogLine, *, rank: int | None = None, source: str = "") -> tuple[Said, ...]:
    """As `said_in`, for a line that is taken apart already."""
    whose = line.rank if line.rank is not None else rank
    about = Said("setting", whose, *_group(line.text), t=line.t, host=line.host, source=source)
    return tuple(it for read in _READERS for it in read(line.text, about))


def _group(text: str) -> tuple[int | None, str | None, str | None]:
    """(rank within the group, the group's name, its description) as the line's own words say."""
    if match := _GROUP.search(text):
        return int(match["rank"]), match["guid"] or match["id"], match["desc"]
    inside = _IN_GROUP.search(text)
    return (int(inside[1]) if inside else None), None, None


def _timeout(text: str, about: Said) -> Iterable[Said]:
    if match := _WORK.search(text):
        fields = dict(FIELD.findall(match[1]))
        yield replace(
            about,
            kind="timeout",
            seq=whole(fields.get("SeqNum")),
            op=fields.get("OpType"),
            numel_in=whole(fields.get("NumelIn")),
            numel_out=whole(fields.get("NumelOut")),
            timeout_ms=whole(fields.get("Timeout(ms)")),
            ran_ms=int(match[2]),
        )
    elif at := _AT_WORK.search(text):
        yield _with_last(replace(about, kind="failure", seq=int(at[1])), text)


def _dump(text: str, about: Said) -> Iterable[Said]:
    if _ASKED.search(text):
        by = _ASKED_BY.search(text)
        others = (int(by[1]),) if by and not by[1].startswith("-") else ()
        yield _with_last(replace(about, kind="dump_asked", others=others), text)
    elif "preparing to dump debug info" in text:
        yield replace(about, kind="dump_begun")
    elif done := _DONE.search(text):
        yield replace(about, kind="dump_done", text=done["file"])
    elif failed := _FAILED.search(text) or _NO_FOLDER.search(text):
        yield replace(about, kind="dump_failed", text=failed["file"].rstrip(".,"))
    elif "ecorder dump in heartbeatMonitor" in text and "timed out" in text:
        yield replace(about, kind="dump_slow")


def _settings(text: str, about: Said) -> Iterable[Said]:
    if "was replaced by" in text:
        return  # our own start-up mended it
    for match in _SETTING.finditer(text):
        yield replace(about, kind="setting", text=f"{match['name']}={match['value']}")


def _monitor(text: str, about: Said) -> Iterable[Said]:
    if "watchdog got stuck" in text or "Heartbeat monitor timed out" in text:
        yield replace(about, kind="stuck")
    if "Could not acquire GIL" in text:
        yield replace(about, kind="no_gil")
    if "Store" in text and any(word in text for word in _STORE):
        yield replace(about, kind="store_gone")
    if "taking the entire process down" in text:
        yield replace(about, kind="teardown")


def _gloo(text: str, about: Said) -> Iterable[Said]:
    if match := _GLOO.search(text):
        yield replace(about, kind="gloo_timeout", op=match[2], timeout_ms=int(match[1]))
    elif peer_gone(text):
        yield replace(about, kind="peer_gone")


def peer_gone(text: str) -> bool:
    """Whether gloo, NCCL or the store says that the other end is gone.

    >>> peer_gone("[pair.cc:9] Read error: Connection reset by peer")
    True
    >>> peer_gone("ConnectionResetError: [Errno 104] Connection reset by peer")
    False
    """
    match = _PEER.search(text)
    return match is not None and (
        match["whom"] is not None or _OF_COLLECTIVES.search(text, 0, match.start()) is not None
    )


_Reader = Callable[[str, Said], Iterable[Said]]
_READERS: tuple[_Reader, ...] = (_timeout, _dump, _settings, _monitor, said_by_checks, _gloo)


def _with_last(said: Said, text: str) -> Said:
    last = {which.lower(): int(number) for which, number in _LAST.findall(text)}
    return replace(
        said,
        last_enqueued=last.get("enqueued"),
        last_started=last.get("started"),
        last_completed=last.get("completed"),
    )
