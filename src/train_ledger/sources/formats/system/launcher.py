"""What does torchrun tell of the ranks that it started: who died of what, and who was ended for it?

The agent names the first failure in a line, sends SIGTERM to the siblings, and at the end prints a table of
failures with the root cause by itself. The same death is told once: by the table where there is one.
"""

from __future__ import annotations

import math
import re
import signal
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from train_ledger.facts import Event, Fact, Fault
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_time import TIME, log_time
from train_ledger.sources.lines.signal_name import signal_number
from train_ledger.sources.logs.torchrun import MARKS, Ended, Epilogue

__all__ = ["Launcher"]

_FAILED = re.compile(
    r"failed \(exitcode: (?P<code>-?\d{1,9})\) local_rank: (?P<local_rank>\d{1,6}) \(pid: (?P<pid>\d{1,10})\)"
)
_SENDING = re.compile(r"(?:Sending|Closing) process (\d{1,10}) (?:closing|via) signal (\w{1,20})")
_STOPPED = re.compile(
    r"Received (?:Signals\.)?(\w{1,20}) death signal|Process \d{1,10} got signal: (\d{1,3})"
)
_RESTART = re.compile(
    r"Worker group (\w{1,20})\. (\d{1,6})/(\d{1,6}) attempts left|(will restart worker group)"
)
_EXITS = re.compile(r"exits with return code = (-?\d{1,6})")
_TIME = re.compile(r"\[?(" + TIME + r")")
_MOST = 4096


class Launcher:
    """torchrun's agent and its epilogue, of all generations; DeepSpeed's launcher."""

    name: ClassVar[str] = "torchrun"
    marks: ClassVar[tuple[bytes, ...]] = (
        *MARKS,
        b"time      :",
        b"(exitcode: ",
        b"  rank: ",
        b"  exitcode: ",
        b"closing signal",
        b"via signal",
        b" got signal: ",
        b" death signal",
        b"worker group",
        b"exits with return code",
    )
    knows: ClassVar[frozenset[str]] = frozenset()
    speaks_for_its_rank: ClassVar[bool] = False

    def __init__(self) -> None:
        self._epilogue = Epilogue()
        self._open: OrderedDict[tuple[int, int], Fault] = OrderedDict()

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        self._epilogue.add(line.text, source)
        if self._epilogue.ended:
            ended, self._epilogue.ended = self._epilogue.ended, []
            return [self._of_table(it, line) for it in ended]
        return self._of_agent(line, source)

    def _of_agent(self, line: LogLine, source: str) -> Iterator[Fact]:
        text = line.text
        if match := _FAILED.search(text):
            yield from self._failed(match, line, source)
        elif match := _SENDING.search(text):
            details = {"pid": int(match[1]), "number": signal_number(match[2]), "victim": True}
            yield Event(_t(line), "signal_sent", None, host=line.host, source=source, details=details)
        elif match := _STOPPED.search(text):
            details = {"number": signal_number(match[1] or match[2]), "of": "launcher"}
            yield Fault(_known(line), "signal", None, host=line.host, source=source, details=details)
        elif match := _RESTART.search(text):
            left = int(match[2]) if match[2] else None
            yield Event(_t(line), "restart", None, host=line.host, source=source, details={"left": left})
        elif match := _EXITS.search(text):
            code = int(match[1])
            details = _with_signal({"exit_code": code})
            if code:
                yield Fault(_known(line), _code(code), None, host=line.host, source=source, details=details)

    def _failed(self, match: re.Match[str], line: LogLine, source: str) -> Iterator[Fault]:
        code, pid = int(match["code"]), int(match["pid"])
        details = {"exit_code": code, "local_rank": int(match["local_rank"]), "pid": pid, "root": True}
        if len(self._open) >= _MOST:
            yield self._open.popitem(last=False)[1]
        self._open[(pid, code)] = Fault(
            _known(line),
            _code(code),
            None,
            host=line.host,
            source=source,
            details=_with_signal(details),
        )

    def _of_table(self, ended: Ended, line: LogLine) -> Fault:
        before = self._open.pop((ended.pid, ended.code), None) if ended.pid is not None else None
        details = {"exit_code": ended.code, "local_rank": ended.local_rank, "pid": ended.pid}
        details |= {"root": True} if ended.first else {"victim": True} if ended.code == -15 else {}
        host = ended.host if ended.host not in (None, "localhost") else line.host or ended.host
        t = before.t if before is not None and before.t is not None else ended.t
        told = _with_signal({key: value for key, value in details.items() if value is not None})
        return Fault(t, _code(ended.code), ended.rank, host=host, source=ended.source, details=told)

    def end(self) -> Iterable[Fact]:
        """Deaths that no table told."""
        left = list(self._open.values())
        self._open.clear()
        return left


def _code(exit_code: int) -> str:
    return "exception" if exit_code > 0 else "killed" if exit_code == -signal.SIGKILL else "signal"


def _with_signal(details: dict[str, Any]) -> dict[str, Any]:
    return {**details, "number": -details["exit_code"]} if details["exit_code"] < 0 else details


def _known(line: LogLine) -> float | None:
    if line.t is not None:
        return line.t
    match = _TIME.match(line.text)
    return log_time(match[1]) if match else None


def _t(line: LogLine) -> float:
    t = _known(line)
    return math.nan if t is None else t
