"""What do our own signal files say, where they are read as any log is?

An exception that nobody caught, a signal and a checkpoint that failed are events there, which a run is folded
from. Whoever reads the file as a log asks for its troubles, so that each is told as a fault, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar

from train_ledger.facts import Event, Fact, Fault
from train_ledger.sources.formats.system.exceptions import named
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.logs.watchdog import peer_gone
from train_ledger.sources.signal_lines.jsonl import SignalDecoder

__all__ = ["SignalLines"]

_NAME = re.compile(r"rank_\d{1,9}\.jsonl(?:\.\d{1,9})?(?:\.gz)?\Z")
_FAULTS = {"exception": "exception", "signal": "signal", "ckpt_failed": "checkpoint_failed"}
_LINE = re.compile(rb'^\{[^\n]{0,4000}"t": ?[-\d"N]', re.MULTILINE)


class SignalLines:
    """RUN/signals/rank_N.jsonl, or any file of such lines."""

    name: ClassVar[str] = "train-ledger signals"
    marks: ClassVar[tuple[bytes, ...]] = ()
    knows: ClassVar[frozenset[str]] = frozenset()
    numbers_attempts: ClassVar[bool] = True

    def __init__(self) -> None:
        self._decoder = SignalDecoder()

    @classmethod
    def fits(cls, head: bytes, file_name: str) -> bool:
        if b'"log_type"' in head:
            return False  # torchtitan's structured log
        line = _LINE.search(head.lstrip(b"\0"))
        if _NAME.fullmatch(file_name):  # its first line may be NULs of a truncation, or long and damaged
            return line is not None or b"\n" not in head.rstrip(b"\n")
        ranked = b'"rank"' in head and (b'"step"' in head or b'"event"' in head)
        return line is not None and ranked

    @property
    def damaged(self) -> Counter[str]:
        return self._decoder.bad_lines

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        data = line.text.lstrip("\0").encode("utf-8", "replace")  # NULs are of a truncation
        fact = self._decoder.decode(data, source, rank=line.rank)
        if fact is None:
            return ()
        if not isinstance(fact, Event) or fact.name not in _FAULTS or fact.details.get("fatal") is False:
            return (fact,)
        return (fact, _fault(fact))

    def end(self) -> Iterable[Fact]:
        return ()


def _fault(event: Event) -> Fault:
    code = _FAULTS[event.name]
    told = {key: _word(value) for key, value in event.details.items()}
    more: Mapping[str, object] = {}
    if event.name == "exception":
        raised = f"{told.get('type')}: {told.get('message')}"
        code, more = named(raised)
        more = {**more, "what": "peer_gone"} if peer_gone(raised) else more
    return Fault(
        event.t,
        code,
        event.rank,
        event.step,
        event.attempt,
        event.host,
        event.source,
        {**told, **more},
    )


def _word(value: object) -> object:
    """What faults are compared by; anybody may write signal files, and lists into them."""
    return value if value is None or isinstance(value, str | int | float) else f"({type(value).__name__})"
