"""Where did the threads of a process stand, by a py-spy dump that was kept in a file?

Each thread is one event `stack`, its frames from the innermost outwards as py-spy prints them. What they say
of a hang is judged elsewhere (`train-ledger hang --stacks`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, ClassVar

from train_ledger.facts import Event, Fact
from train_ledger.sources.lines.log_line import LogLine

__all__ = ["PySpyJson", "PySpyText"]

_PROCESS = re.compile(r"Process (\d{1,10}): (.{0,1000})")
_THREAD = re.compile(r"Thread (?:0x)?([0-9A-Fa-f]{1,16}) \(([\w+]{1,20})\)(?:: \"(.{0,200})\")?")
_HEAD = re.compile(rb"^Process \d{1,10}: [^\n]{0,2000}\nPython v\d", re.MULTILINE)
_MOST_FRAMES = 500


class PySpyText:
    """What `py-spy dump` prints, of one process or of several in one file."""

    name: ClassVar[str] = "py-spy"
    marks: ClassVar[tuple[bytes, ...]] = ()
    knows: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self._process: dict[str, Any] = {}
        self._open: tuple[str, dict[str, Any]] | None = None

    @classmethod
    def fits(cls, head: bytes, file_name: str) -> bool:
        return _HEAD.search(head) is not None

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        text = line.text.rstrip()
        if match := _PROCESS.fullmatch(text):
            yield from self.end()
            self._process = {"pid": int(match[1]), "command": match[2][:200]}
        elif match := _THREAD.match(text):
            yield from self.end()
            told: dict[str, Any] = {"thread": match[1], "state": match[2], "thread_name": match[3]}
            self._open = (source, {**self._process, **told, "frames": []})
        elif self._open and text[:1] in " \t" and text.strip():
            frames = self._open[1]["frames"]
            if len(frames) < _MOST_FRAMES:
                frames.append(text.strip())
        else:
            yield from self.end()

    def end(self) -> Iterable[Fact]:
        if self._open:
            source, details = self._open
            self._open = None
            yield Event(math.nan, "stack", None, source=source, details=details)


class _PySpyJson:
    name: ClassVar[str] = "py-spy (JSON)"
    knows: ClassVar[frozenset[str]] = frozenset()

    def fits(self, head: bytes, file_name: str) -> bool:
        return head.lstrip()[:1] == b"[" and b'"thread_id"' in head and b'"frames"' in head

    def facts(self, content: bytes, source: str) -> Iterable[Fact]:
        try:
            threads = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ValueError("is no whole JSON") from error
        if not isinstance(threads, list):
            raise ValueError("is no list of threads")
        for thread in threads:
            if isinstance(thread, dict):
                yield Event(math.nan, "stack", None, source=f"{source}:1", details=_thread(thread))


PySpyJson = _PySpyJson()
"""What `py-spy dump --json` prints."""


def _thread(thread: dict[str, Any]) -> dict[str, Any]:
    frames = thread.get("frames")
    lines = [_frame(it) for it in frames if isinstance(it, dict)] if isinstance(frames, list) else []
    state = "active" if thread.get("active") is True else "idle"
    return {
        "pid": thread.get("pid"),
        "thread": thread.get("os_thread_id"),
        "state": f"{state}+gil" if thread.get("owns_gil") is True else state,
        "thread_name": thread.get("thread_name"),
        "frames": lines[:_MOST_FRAMES],
    }


def _frame(frame: dict[str, Any]) -> str:
    return f"{frame.get('name')} ({frame.get('short_filename') or frame.get('filename')}:{frame.get('line')})"
