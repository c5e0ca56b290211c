"""What do the watchdog, the recorder and the checks of collectives tell in a log, as facts?

What the lines mean is read by `sources.watchdog`. One work that timed out is told in two lines or three – the
timeout, without its group; the failure, with it; the exception that ends the process – and is one fault.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from train_ledger.facts import Event, Fact
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.logs.said import Said
from train_ledger.sources.logs.said_fault import fault_of
from train_ledger.sources.logs.watchdog import MARKS, said_by

__all__ = ["Collectives"]

_SETTINGS = (b"TORCH_NCCL_", b"TORCH_FR_", b"NCCL_ASYNC_ERROR_HANDLING", b"should dump")
_EVENTS = {
    "dump_asked": "dump_asked",
    "dump_begun": "dump_begun",
    "dump_done": "dump_done",
    "dump_failed": "dump_failed",
    "dump_slow": "dump_slow",
    "teardown": "teardown",
    "no_gil": "no_gil",
}


class Collectives:
    """Lines of ProcessGroupNCCL and its kin, of the Flight Recorder, of gloo and of DETAIL's checks."""

    name: ClassVar[str] = "NCCL and gloo"
    marks: ClassVar[tuple[bytes, ...]] = tuple(mark for mark in MARKS if mark not in _SETTINGS)
    knows: ClassVar[frozenset[str]] = frozenset()

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        for said in said_by(line, source=source):
            fault = fault_of(said)
            if fault is not None:
                details = {"what" if key == "kind" else key: value for key, value in fault.details.items()}
                yield replace(fault, details={**details, **_others(said)})
            elif said.kind in _EVENTS:
                yield Event(
                    math.nan if said.t is None else said.t,
                    _EVENTS[said.kind],
                    said.rank,
                    host=said.host,
                    source=source,
                    details=_told(said),
                )

    def end(self) -> Iterable[Fact]:
        return ()


def _others(said: Said) -> dict[str, object]:
    """What a mismatch or a barrier names besides."""
    told: dict[str, object] = {"numel_in": said.numel_in, "numel_out": said.numel_out}
    if said.others:
        told["ranks_unfinished" if said.kind == "unfinished" else "ranks_in_group"] = list(said.others)
    if said.brought:
        told["brought"] = [{"rank_in_group": it.rank, "op": it.op, "seq": it.seq} for it in said.brought]
    return {key: value for key, value in told.items() if value is not None}


def _told(said: Said) -> dict[str, object]:
    told = {
        "group": said.group,
        "rank_in_group": said.rank_in_group,
        "file": said.text,
        "from_ranks": list(said.others) or None,
        "last_enqueued": said.last_enqueued,
        "last_completed": said.last_completed,
    }
    return {key: value for key, value in told.items() if value is not None}
