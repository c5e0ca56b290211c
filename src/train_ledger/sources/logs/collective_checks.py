"""What did torch's own checks of collectives say in this line: who brought something else, who did not come?

ProcessGroupWrapper (TORCH_DISTRIBUTED_DEBUG=DETAIL) compares what ranks bring, monitored_barrier names who
did not pass, and the watchdog's report of a desync (TORCH_NCCL_DESYNC_DEBUG) says how far each rank came. All
ranks in these words are ranks within the process group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from train_ledger.sources.logs.said import Brought, Kind, Said

__all__ = ["CHECK_MARKS", "FIELD", "said_by_checks", "whole"]

CHECK_MARKS: tuple[bytes, ...] = (
    b"Detected mismatch between collectives",
    b"monitoredBarrier",
    b"finish collective #",
    b"finished collective #",
    b"never joined any collectives",
)
FIELD = re.compile(r"(\w+(?:\(ms\))?)=(\[[^\]]{0,500}\]|[^,()\s]{1,80})")
"""A name and its value in what torch prints of a work."""
_MISMATCH = re.compile(
    r"Rank (\d{1,7}) is running collective: (?:CollectiveFingerPrint)?\(?(.{0,400}?)"
    r"(?=TensorDeviceTypes|, but Rank|\)\)?\.|$)"
)
_RANKS = r"(\d{1,7}(?:, ?\d{1,7}){0,9999})"
_BARRIER = re.compile(rf"Ranks? {_RANKS} failed to pass monitoredBarrier in (\d{{1,12}}) ms")
_PASSED = re.compile(r"Rank (\d{1,7}) successfully reached monitoredBarrier")
_LAGGING = re.compile(
    rf"\[{_RANKS}\] (?:(?P<stayed>joined but didn't finish collective #)"
    r"|finished collective #\d{1,18}, but didn't join collective #)(?P<seq>\d{1,18})\b"
)
_MISSING = re.compile(rf"\branks \[{_RANKS}\] are the lagging ranks that caused")


def said_by_checks(text: str, about: Said) -> Iterable[Said]:
    """The statements of a line; `about` holds what is known of it besides.

    >>> line = "   [1, 5] finished collective #11, but didn't join collective #12 (count from 1)"
    >>> [(it.kind, it.others, it.seq) for it in said_by_checks(line, Said("setting"))]
    [('absent', (1, 5), 12)]
    """
    if "Detected mismatch between collectives" in text:
        brought = tuple(_brought(match) for match in _MISMATCH.finditer(text))
        if brought:
            yield replace(about, kind="mismatch", rank_in_group=brought[0].rank, brought=brought)
    elif barrier := _BARRIER.search(text):
        others = _listed(barrier[1])
        yield replace(about, kind="barrier", rank_in_group=0, others=others, timeout_ms=int(barrier[2]))
    elif passed := _PASSED.search(text):
        yield replace(about, kind="barrier", rank_in_group=int(passed[1]))
    elif lagging := _LAGGING.search(text):
        kind: Kind = "unfinished" if lagging["stayed"] else "absent"
        yield replace(about, kind=kind, others=_listed(lagging[1]), seq=int(lagging["seq"]))
    elif missing := _MISSING.search(text):
        yield replace(about, kind="absent", others=_listed(missing[1]))


def _listed(text: str) -> tuple[int, ...]:
    return tuple(int(it) for it in text.split(","))


def _brought(match: re.Match[str]) -> Brought:
    fields = dict(FIELD.findall(match[2]))
    return Brought(
        int(match[1]),
        fields.get("OpType"),
        whole(fields.get("SequenceNumber")),
        fields.get("TensorShape"),
        fields.get("TensorDtypes"),
    )


def whole(text: str | None) -> int | None:
    """A number of a work; None for what is none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else None
