"""Which exceptions stand in a log, and which of them are something with a name of its own?

A want of device memory, an error of NCCL and a timeout of the watchdog come as Python exceptions, too, and as
bare lines where C++ printed them. That the launcher raises because a rank died is its own story, told by
`launcher`.
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from train_ledger.facts import Event, Fact, Fault
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.logs.traceback import MARKS, Raised, Tracebacks
from train_ledger.sources.logs.watchdog import peer_gone

__all__ = ["Exceptions", "named"]

_OUT_OF_MEMORY = re.compile(r"(?:CUDA|HIP|XPU|NPU)(?: error:)? out of memory", re.IGNORECASE)
_ERROR = re.compile(r"error\b", re.IGNORECASE)
_TRIED = re.compile(r"Tried to allocate (\d{1,9}(?:\.\d{1,6})?) ?([KMGT]?i?B)")
_GPU = re.compile(r"\bGPU (\d{1,3})\b")
_CAPACITY = re.compile(
    r"(\d{1,9}(?:\.\d{1,6})?) ?([KMGT]?i?B) total capac(?:ity|ty)"
    r"|total capac(?:ity|ty) of (\d{1,9}(?:\.\d{1,6})?) ?([KMGT]?i?B)"
)
_FREE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([KMGT]?i?B) (?:is )?free")
_NCCL = re.compile(
    r"\bnccl(?:System|Remote|Internal|UnhandledCuda|Timeout)Error\b|\bnccl(?:InvalidUsage|InvalidArgument)\b"
    r"|\bNCCL (?:communicator was aborted|error in|error: )|\bunhandled (?:system|cuda) error"
)
_WARNED = re.compile(
    r"(?:\b(?P<host>[A-Za-z][\w.-]{0,80}):\d{1,10}:\d{1,10} )?\[(?P<gpu>\d{1,3})\] .{0,200}?"
    r"NCCL WARN (?P<what>.{1,1000})"
)
_TROUBLE = re.compile(
    r"error|fail|tim(?:ed|e) ?out|closed|refused|reset|unreachable|abort|mismatch|Bootstrap|vendor err"
    r"|duplicate",
    re.IGNORECASE,
)
_WITHOUT = re.compile(r"Failed to (?:open|load|find) \S{0,200}(?:\.so\b|Plugin|symbol)", re.IGNORECASE)
"""A library or a plugin that NCCL goes on without, by another way."""
_OF_GPU = re.compile(
    r"(?P<api>(?:CUDA|HIP) error): |(?P<driver>Memory access fault|HW Exception) (?=by GPU node-\d)"
)
"""What CUDA and HIP say, and what ROCm's driver prints before it aborts the process."""
_SIGNALS = {
    "Segmentation fault": int(signal.SIGSEGV),
    "Aborted": int(signal.SIGABRT),
    "Bus error": int(signal.SIGBUS),
    "Illegal instruction": int(signal.SIGILL),
    "Floating point exception": int(signal.SIGFPE),
}
_OF_SHELL = {**_SIGNALS, "Killed": int(signal.SIGKILL), "Terminated": int(signal.SIGTERM)}
_FATAL = re.compile(rf"Fatal Python error: ({'|'.join(_SIGNALS)})")
_OF_LAUNCHER = ("ChildFailedError", "SignalException", "CalledProcessError")
_STORE_GONE = "RendezvousConnectionError"
"""The agents' store cannot be reached: it never came, or its host ended before."""
_ENDED = re.compile(
    r"\bline \d{1,6}:\s{1,8}(\d{1,10})\s{1,8}(Killed|Terminated|" + "|".join(_SIGNALS) + r")\b"
)
_QUIET_LINES = 1000
"""After so many lines of others a traceback that broke off is not waited for."""
_FRONT_OF_WARNINGS = 400
_PARTS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_LONGEST = 500


class Exceptions:
    """Python tracebacks, out-of-memory errors and errors of NCCL."""

    name: ClassVar[str] = "exceptions"
    marks: ClassVar[tuple[bytes, ...]] = (
        *MARKS,
        b"out of memory",
        b"NCCL WARN",
        b"NCCL error",
        b"Error: A call",
        b"CUDA error: ",
        b"HIP error: ",
        b" by GPU node-",
        b"Fatal Python error: ",
        b": line ",
    )
    knows: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self._tracebacks = Tracebacks()
        self._number = 0
        self._quiet = 0
        self._explained = -1

    @property
    def wants_more(self) -> bool:
        return self._tracebacks.wants_more and self._quiet < _QUIET_LINES

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        self._number = _number(source, self._number)
        was_open = self._tracebacks.wants_more
        line = self._tracebacks.own(line)
        in_front = line.rank is not None
        if "Traceback" in line.text or line.text[:1] == " ":
            self._quiet = 0
        else:
            self._quiet += 1
        raised = self._tracebacks.add(line, self._number, source, in_front=in_front)
        if raised is not None:
            return _of(raised, line)
        if was_open and line.text[:1] in " \t":
            return ()  # a frame, in which source code stands
        told = list(_bare(line, source))
        if self._explained == self._number - 1 and line.text.startswith("nccl"):
            return ()  # what the error of NCCL in the line before means
        if any(it.fault == "nccl_error" for it in told):
            self._explained = self._number
        return told

    def end(self) -> Iterable[Fact]:
        return ()


def _number(source: str, before: int) -> int:
    tail = source.rpartition(":")[2]
    return int(tail) if tail.isdecimal() and len(tail) < 19 else before + 1


def _of(raised: Raised, line: LogLine) -> Iterable[Fact]:
    kind, _, message = raised.exception.partition(": ")
    if kind in _OF_LAUNCHER and not raised.in_front:
        return
    code, more = named(raised.exception)
    details = {
        "type": kind,
        "message": message,
        "frame": raised.frame,
        "local_rank": raised.local_rank,
        "in_front": raised.in_front or None,
        **more,
    }
    told = {key: value for key, value in details.items() if value is not None}
    if raised.is_aside:  # beside the training, which goes on or says itself what ended it
        aside = {"thread": raised.thread, "ignored_in": raised.ignored_in, "fatal": False}
        told |= {key: value for key, value in aside.items() if value is not None}
        t = math.nan if line.t is None else line.t
        yield Event(t, "exception", raised.rank, host=raised.host, source=raised.source, details=told)
        return
    yield Fault(line.t, code, raised.rank, host=raised.host, source=raised.source, details=told)


def _bare(line: LogLine, source: str) -> Iterable[Fault]:
    """A line that names its trouble without a traceback: C++ printed it, or a logger."""
    if warned := _warned(line.text):
        if _TROUBLE.search(warned["what"]) and not _WITHOUT.search(warned["what"]):
            details: dict[str, Any] = {
                "message": warned["what"].strip()[:_LONGEST],
                "local_gpu": int(warned["gpu"]),
            }
            host = line.host or warned["host"]
            yield Fault(line.t, "nccl_error", line.rank, host=host, source=source, details=details)
        return
    if "oom-kill" in line.text or "Killed process" in line.text:
        return  # the kernel's, of host memory
    if fatal := _FATAL.search(line.text):
        yield _signalled(line, source, fatal[1], {"message": fatal[0]})
    elif ended := _ENDED.search(line.text):
        yield _signalled(line, source, ended[2], {"pid": int(ended[1])})
    else:
        yield from _named(line, source)


def _warned(text: str) -> re.Match[str] | None:
    at = text.find("NCCL WARN")
    return _WARNED.search(text, max(0, at - _FRONT_OF_WARNINGS)) if at >= 0 else None


def _signalled(line: LogLine, source: str, word: str, details: dict[str, Any]) -> Fault:
    code = "killed" if word == "Killed" else "signal"
    told = {"number": _OF_SHELL[word], **details}
    return Fault(line.t, code, line.rank, host=line.host, source=source, details=told)


def _named(line: LogLine, source: str) -> Iterable[Fault]:
    code, more = named(line.text)
    if code == "oom" and "tried_bytes" not in more and not _ERROR.search(line.text):
        return  # prose: what to do if memory runs out
    if code == "exception" and (of_gpu := _OF_GPU.search(line.text)):
        kind = of_gpu["api"] or of_gpu["driver"]
        more = {"type": kind, "message": line.text[of_gpu.end() :].strip()[:_LONGEST]}
    if (code != "exception" or more) and "Watchdog caught" not in line.text:
        details: dict[str, Any] = {"message": line.text.strip()[:_LONGEST], **more}
        yield Fault(line.t, code, line.rank, host=line.host, source=source, details=details)


def named(text: str) -> tuple[str, Mapping[str, Any]]:
    """The code of the fault that an exception's text is, and what it tells of memory."""
    if _OUT_OF_MEMORY.search(text):
        return "oom", _memory(text)
    if "Watchdog caught collective" in text:
        return "watchdog_timeout", {}
    if text.startswith(_STORE_GONE):
        return "nccl_error", {"what": "peer_gone"}
    return ("nccl_error" if _NCCL.search(text) or peer_gone(text) else "exception"), {}


def _memory(text: str) -> dict[str, Any]:
    """What an allocator says: bytes that were wanted, and the GPU by its number on the host."""
    tried, gpu, whole, free = (it.search(text) for it in (_TRIED, _GPU, _CAPACITY, _FREE))
    told = {
        "tried_bytes": _bytes(tried[1], tried[2]) if tried else None,
        "local_gpu": int(gpu[1]) if gpu else None,
        "capacity_bytes": _bytes(whole[1] or whole[3], whole[2] or whole[4]) if whole else None,
        "free_bytes": _bytes(free[1], free[2]) if free else None,
    }
    return {key: value for key, value in told.items() if value is not None}


def _bytes(number: str, unit: str) -> int:
    """
    >>> _bytes("1.5", "GiB"), _bytes("3", "bytes")
    (1610612736, 3)
    """
    return round(float(number) * 1024.0 ** _PARTS.get(unit[0], 0))
