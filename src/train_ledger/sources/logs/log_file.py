"""What does one log say, whatever stands in it?

A block in which none of a few words stands is only counted through; lines that any reader may want are handed
to all of them. What they find goes to a sink; what is of the whole file stays here until its end.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import IO, Protocol

from train_ledger.sources.files.log_source import why_no_text
from train_ledger.sources.lines.log_line import read_line
from train_ledger.sources.logs import kernel_log, torchrun, traceback, watchdog
from train_ledger.sources.logs.kernel_log import KernelFault
from train_ledger.sources.logs.said import Said
from train_ledger.sources.logs.torchrun import Epilogue, LogPlace
from train_ledger.sources.logs.traceback import Raised, Tracebacks

__all__ = ["LogFile", "Sink"]

_CHUNK_BYTES = 64 << 10
_LINE_BYTES = 64 << 10
_HEAD = 8
"""One part in eight of what is read of a long file is its start, where settings stand; the rest its end."""
_WANTED = re.compile(
    b"|".join(map(re.escape, (*watchdog.MARKS, *kernel_log.MARKS, *torchrun.MARKS, *traceback.MARKS)))
).search
_COARSE = (
    b"CCL",
    b"Exception i",
    b"above exc",
    b"ecorder",
    b"dump signal",
    b"TORCH_",
    b"ollective",
    b"onnection ",
    b"pair closure",
    b"imed out",
    b"Barrier",
    b"atchdog",
    b"Store",
    b" dump",
    b"Xid (",
    b"Killed process",
    b"Traceback",
    b"      :",
    b"exitcode  :",
    b"Root Cause",
    b"Failures:",
    b"acquire GIL",
    b"entire process",
    b"write there",
)
"""In every line that is wanted one of these stands; fewer and shorter, since most of a log is only passed."""


class Sink(Protocol):
    """Where the findings of a file go; `skip` is told in words what was not read."""

    def keep(self, said: Said) -> None: ...

    def keep_kernel(self, fault: KernelFault) -> None: ...

    def leave_out(self, length: int) -> None: ...

    def skip(self, what: str, where: str) -> None: ...


class LogFile:
    """One file on its way through all readers; `written_t` as in `read_line`.

    `ranks` are the global ranks that lines of it name in front.
    """

    def __init__(self, sink: Sink, name: str, place: LogPlace, written_t: float) -> None:
        self._sink = sink
        self._name = name
        self._place = place
        self._written_t = written_t
        self._number = 0
        self.tracebacks = Tracebacks()
        self.epilogue = Epilogue()
        self.ranks: set[int] = set()

    @property
    def raised(self) -> list[Raised]:
        """The exceptions of the ranks in this log, once it was read."""
        return self.tracebacks.raised(self._number)

    def run(self, file: IO[bytes], size: int, most_bytes: int) -> None:
        if size > most_bytes:
            head = most_bytes // _HEAD
            self._sink.leave_out(size - most_bytes)
            self._pieces(file, head)
            file.seek(size - most_bytes + head)
            self._number = -1 << 40  # how many lines were passed over is not known
        self._pieces(file, size)

    def _pieces(self, file: IO[bytes], limit: int) -> None:
        rest = b""
        while limit > 0 and (chunk := file.read(min(_CHUNK_BYTES, limit))):
            if not self._number and (why := why_no_text(chunk)) is not None:
                self._sink.skip(why, self._name)
                return
            limit -= len(chunk)
            whole, _, tail = (rest + chunk).rpartition(b"\n")
            if len(tail) > _LINE_BYTES:
                self._sink.skip(f"a line longer than {_LINE_BYTES >> 10} KiB, cut", self._name)
                whole, tail = (whole + b"\n" if whole else b"") + tail, b""
            rest = tail
            self._lines(whole)
        self._lines(rest)

    def _lines(self, block: bytes) -> None:
        if not block:
            return
        if not self.tracebacks.wants_more and not any(mark in block for mark in _COARSE):
            self._number += block.count(b"\n") + 1
            return
        for line in block.split(b"\n"):
            self._number += 1
            for piece in line.split(b"\r") if b"\r" in line else (line,):
                self._line(piece)

    def _line(self, line: bytes) -> None:
        if not line or not (self.tracebacks.wants_more or _WANTED(line)):
            return
        line = line[:_LINE_BYTES]
        source = f"{self._name}:{self._number}" if self._number > 0 else f"{self._name}:?"
        rank = self._place.rank
        for said in watchdog.said_in(line, rank=rank, written_t=self._written_t, source=source):
            self._sink.keep(said)
        fault = kernel_log.kernel_fault(line, host=self._place.host, written_t=self._written_t, source=source)
        if fault is not None:
            self._sink.keep_kernel(fault)
            return
        taken = self.tracebacks.own(read_line(line))
        if taken.rank is not None:
            self.ranks.add(taken.rank)
        owned = replace(taken, rank=taken.rank if taken.rank is not None else rank)
        self.tracebacks.add(owned, self._number, source, in_front=taken.rank is not None)
        self.epilogue.add(taken.text, source)
