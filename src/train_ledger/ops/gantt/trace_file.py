"""How does a trace get into a file that Perfetto opens, event by event?

The JSON object of the Chrome trace event format: complete events (`X`), instants (`i`), counters (`C`) and
the metadata (`M`) that names processes and threads. Times are whole microseconds since 1970. Nothing is kept
but a buffer, so that a trace may be larger than the memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any, Self

import msgspec

__all__ = ["TraceFile", "encoded", "microseconds"]

_BUFFER_EVENTS = 4000
_NAMES = 100_000
_LONGEST_NAME = 200
_GZIP = 31
_LEVEL = 3
_encode = msgspec.json.Encoder().encode


def microseconds(t: float) -> int:
    """Unix seconds as whole microseconds; rounding keeps the order, so that what was nested stays nested."""
    return round(t * 1e6)


def encoded(args: Mapping[str, Any]) -> str:
    """`args` of an event as JSON; a number that is not finite is null, as JSON has none.

    >>> encoded({"step": 41, "loss": float("nan")})
    '{"step":41,"loss":null}'
    """
    try:
        return _encode(args).decode()
    except (UnicodeEncodeError, OverflowError):  # half a pair of UTF-16, or a number of more than 64 bits
        return _encode({_sound(key): _sound(it) for key, it in args.items()}).decode()


def _sound(value: Any) -> Any:
    if isinstance(value, int | float) and abs(value) < 1 << 53:
        return value
    return None if value is None else str(value).encode(errors="replace").decode()


class TraceFile:
    """Writes events to `file`, compressed where `gz`; `events` counts them, `size_bytes` what was written.

    `close(other)` ends the JSON with the key "otherData"; a file that was not closed is no whole JSON.
    """

    def __init__(self, file: IO[bytes], *, gz: bool) -> None:
        self.events = 0
        self.size_bytes = 0
        self._file = file
        self._zip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP) if gz else None
        self._buffer: list[str] = []
        self._names: dict[str, str] = {}
        self._begun = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is None:
            self.close({})

    def slice(
        self, pid: int, tid: int, name: str, category: str, start_us: int, end_us: int, args: str
    ) -> None:
        """A thread was in `name` from start to end; `args` is JSON."""
        self._add(
            f'{{"ph":"X","pid":{pid},"tid":{tid},"ts":{start_us},"dur":{end_us - start_us},'
            f'"name":{self._name(name)},"cat":"{category}","args":{args}}}'
        )

    def instant(
        self, pid: int, tid: int, name: str, category: str, at_us: int, args: str, scope: str
    ) -> None:
        """Something happened to a thread (scope "t") or a process ("p")."""
        self._add(
            f'{{"ph":"i","s":"{scope}","pid":{pid},"tid":{tid},"ts":{at_us},'
            f'"name":{self._name(name)},"cat":"{category}","args":{args}}}'
        )

    def counter(self, pid: int, tid: int, name: str, at_us: int, value: float) -> None:
        """A number that is drawn as a graph; it must be finite."""
        shown = self._name(name)
        self._add(
            f'{{"ph":"C","pid":{pid},"tid":{tid},"ts":{at_us},"name":{shown},"args":{{{shown}:{value!r}}}}}'
        )

    def named(self, what: str, pid: int, tid: int, value: str | int) -> None:
        """Metadata: `what` is process_name, process_sort_index, thread_name or thread_sort_index."""
        key = "sort_index" if what.endswith("sort_index") else "name"
        args = encoded({key: value})
        self._add(f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{what}","args":{args}}}')

    def _name(self, name: str) -> str:
        found = self._names.get(name)
        if found is None:
            if len(self._names) >= _NAMES:
                self._names.clear()
            found = self._names[name] = _encode(_sound(name[:_LONGEST_NAME])).decode()
        return found

    def _add(self, event: str) -> None:
        self.events += 1
        self._buffer.append(event)
        if len(self._buffer) >= _BUFFER_EVENTS:
            self._flush()

    def _flush(self) -> None:
        if not self._buffer:
            return
        before = ",\n" if self._begun else '{"displayTimeUnit":"ms","traceEvents":[\n'
        self._begun = True
        self._write((before + ",\n".join(self._buffer)).encode())
        self._buffer.clear()

    def close(self, other: Mapping[str, Any]) -> None:
        """Write what is left and end the file, which stays open."""
        self._flush()
        head = "" if self._begun else '{"displayTimeUnit":"ms","traceEvents":['
        self._write(f'{head}\n],"otherData":{encoded(other)}}}\n'.encode())
        if self._zip is not None:
            self._out(self._zip.flush())
        self._file.flush()

    def _write(self, data: bytes) -> None:
        self._out(data if self._zip is None else self._zip.compress(data))

    def _out(self, data: bytes) -> None:
        self.size_bytes += len(data)
        self._file.write(data)
