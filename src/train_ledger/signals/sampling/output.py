"""How much does the training print, and how long does its logging hold it up?

Counted at `write` of the two streams that Python began with and at the one place through which every record
goes to its handlers, so that handlers that are added later count too. What C code writes, and what somebody
writes to `sys.stdout.buffer` or to a stream that has taken the place of stdout, is not seen.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["Output"]


class Output:
    """`log_s` of the thread that makes this, and `stdout_bytes` of all, until it is closed.

    A stream keeps being the object that it was: only its `write` and `flush` are replaced on it, which passes
    everything on. Where somebody has replaced them since, they are left when this is closed. `streams` are
    stdout and stderr where they are not given.
    """

    def __init__(self, streams: Iterable[Any] | None = None) -> None:
        self._thread = threading.get_ident()
        self._spent_s = 0.0
        self._bytes = 0
        self._busy = False
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._call_handlers = logging.Logger.callHandlers
        self._timed_handlers = self._timed(self._call_handlers)
        logging.Logger.callHandlers = self._timed_handlers  # type: ignore[method-assign]
        found = (sys.stdout, sys.stderr) if streams is None else streams
        there = {id(stream): stream for stream in found if stream is not None}
        counted = [self._count(stream) for stream in there.values()]
        self._counting = bool(counted) and all(counted)

    def take(self) -> dict[str, float]:
        """`log_s` since the last call; `stdout_bytes` since the first, where they can be counted."""
        spent_s, self._spent_s = self._spent_s, 0.0
        return {"log_s": spent_s, "stdout_bytes": self._bytes} if self._counting else {"log_s": spent_s}

    def close(self) -> None:
        if logging.Logger.callHandlers is self._timed_handlers:
            logging.Logger.callHandlers = self._call_handlers  # type: ignore[method-assign]
        for stream, name, ours, theirs in self._replaced:
            if vars(stream).get(name) is not ours:
                continue
            if theirs is None:
                delattr(stream, name)
            else:
                setattr(stream, name, theirs)
        self._replaced.clear()

    def _count(self, stream: Any) -> bool:
        """Whether what is written to `stream` can be counted."""
        try:
            write, flush = stream.write, stream.flush
            for name, timed in (("write", self._timed(self._adding(write))), ("flush", self._timed(flush))):
                theirs = vars(stream).get(name)
                setattr(stream, name, timed)
                self._replaced.append((stream, name, timed, theirs))
        except (AttributeError, TypeError):  # a stream that lets nothing be set on it
            return False
        return True

    def _adding(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            written = write(*arguments, **options)
            text = arguments[0] if arguments else None
            if isinstance(text, str):
                self._bytes += len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
            return written

        return counted

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, whose time counts where it is the outermost of ours on the training thread."""

        def timed(*arguments: Any, **options: Any) -> Any:
            if self._busy or threading.get_ident() != self._thread:
                return call(*arguments, **options)
            self._busy = True
            began = time.perf_counter()
            try:
                return call(*arguments, **options)
            finally:
                self._spent_s += time.perf_counter() - began
                self._busy = False

        return timed
