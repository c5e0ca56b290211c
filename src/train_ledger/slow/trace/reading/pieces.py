"""Where does one event of a trace end and the next begin, in a file of any size and in any state?

Traces are one JSON object with the list `traceEvents`, or that list alone, of hundreds of megabytes. They are
read in pieces, each a whole number of events, so that nothing is held twice. A place between two events is
guessed by its look, and believed only where the piece can be decoded.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from train_ledger.slow.trace.reading.events import RawEvent, decoded, decoded_if_whole
from train_ledger.slow.trace.reading.loss import Losses

__all__ = ["Pieces", "opened"]

_READ_BYTES = 1 << 19
_LONGEST_EVENT_BYTES = 16 << 20
_NEAR_END_BYTES = 1 << 16
_MOST_TRIED = 6
_DAMAGED_FROM_BYTES = 1 << 20
_BETWEEN = re.compile(rb'\}\s{0,200},\s{0,200}(?=\{\s{0,200}"(?:ph|name|cat|ts|pid|tid|id|args|dur|bp|s)")')
_LIST = re.compile(rb'"traceEvents"\s{0,200}:\s{0,200}\[')
_MARKS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_GZIP = b"\x1f\x8b"


def opened(path: Path) -> IO[bytes]:
    """The text of a trace, unpacked where it is packed.

    Raises OSError, also for what is no file: a pipe might never end.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is no file, but a trace is wanted", str(path))
    file = path.open("rb")
    magic = file.read(2)
    file.seek(0)
    return cast(IO[bytes], gzip.GzipFile(fileobj=file)) if magic == _GZIP else file


@dataclass(slots=True)
class Pieces:
    """The events of a trace, some ten thousand at a time; what stands around their list is in `metadata`.

    What is damaged is counted in `losses`. `read_bytes` is how much text was read so far, `is_named` whether
    the list is called as that of a trace is.
    """

    file: IO[bytes]
    losses: Losses
    metadata: dict[str, Any] = field(default_factory=dict)
    read_bytes: int = 0
    is_named: bool = False
    _has_list: bool = True
    _is_cut: bool = False

    @property
    def passed_bytes(self) -> int:
        """How far the file is read, as it lies on the disk: packed or not."""
        return int(getattr(self.file, "fileobj", self.file).tell())

    def __iter__(self) -> Iterator[list[RawEvent]]:
        head, buffer = self._head()
        if not self._has_list:
            return
        while more := self._read(len(buffer)):
            self.losses.piece_at = self.read_bytes - len(more) - len(buffer)
            buffer += more
            events, end = self._up_to_a_place(buffer)
            if end:
                yield events
                buffer = buffer[end:]
            elif len(buffer) > _LONGEST_EVENT_BYTES:
                self.losses.count(f"{len(buffer) >> 20} MiB without the end of an event")
                buffer = b""
        self.losses.piece_at = self.read_bytes - len(buffer)
        events, tail = self._last(buffer)
        yield events
        self._take_metadata(head, tail)

    def _up_to_a_place(self, buffer: bytes) -> tuple[list[RawEvent], int]:
        """The events up to the last place that really is one, and it; 0 where more has to be read first."""
        places = _places(buffer)
        for place in places:
            if (events := decoded_if_whole(_stripped(buffer[:place]))) is not None:
                return events, place
        if not places or len(buffer) < _DAMAGED_FROM_BYTES:
            return [], 0  # all that is there may be the arguments of one event
        return decoded(_stripped(buffer[: places[0]]), self.losses), places[0]

    def _last(self, buffer: bytes) -> tuple[list[RawEvent], bytes | None]:
        """The last events, and what stands behind their list, None where it is not closed."""
        begins = (*_places(buffer)[:1], 0)
        for begin in begins:
            text, tail = _closed(buffer, begin)
            if tail is not None and (events := decoded_if_whole(text)) is not None:
                return events, tail
        if tail is None:  # an odd number of quotes in a damaged event hides the end
            text, tail = _closed(buffer, begins[0])
        return decoded(text, self.losses) if text.strip() else [], tail

    def _read(self, held_bytes: int = 0) -> bytes:
        """Some more text, as much as is held already: so no text is looked through often."""
        parts: list[bytes] = []
        left = 0 if self._is_cut else max(_READ_BYTES, held_bytes)
        read1 = cast(io.BufferedIOBase, self.file).read1  # read would lose what it has where it meets damage
        try:
            while left > 0 and (part := read1(left)):
                parts.append(part)
                left -= len(part)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.losses.count(f"the packed file is damaged or cut ({error})")
            self._is_cut = True
        data = b"".join(parts)
        self.read_bytes += len(data)
        return data

    def _head(self) -> tuple[bytes, bytes]:
        """What stands before the first event, and what was read of the events by then."""
        buffer = self._read().removeprefix(codecs.BOM_UTF8).lstrip()
        if buffer[:1] == b"[":
            return b"", buffer[1:]
        while not (found := _LIST.search(buffer)):
            more = self._read(len(buffer)) if len(buffer) < _LONGEST_EVENT_BYTES else b""
            if not more:
                self._has_list = False
                return b"", b""
            buffer += more
        self.is_named = True
        return buffer[: found.start()], buffer[found.end() :]

    def _take_metadata(self, head: bytes, tail: bytes | None) -> None:
        if tail is None:
            self.losses.count("the file ends in the middle of the list of events")
        if not head and not (tail or b"").strip():
            return
        text = head + b'"traceEvents":[]' + (tail if tail is not None else b"}")
        try:
            found = json.loads(text.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            found = self._of_head_alone(head)
        self.metadata.update(found if isinstance(found, dict) else {})

    def _of_head_alone(self, head: bytes) -> Any:
        try:
            return json.loads((head + b'"traceEvents":[]}').decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            self.losses.count("what stands around the list of events is no JSON")
            return {}


def _stripped(text: bytes) -> bytes:
    return text.rstrip().removesuffix(b",")


def _places(buffer: bytes) -> list[int]:
    """Places behind a comma that seems to stand between two events, from the last one on; a few of them."""
    window = _NEAR_END_BYTES
    while True:
        begin = max(0, len(buffer) - window)
        places = [found.end() for found in _BETWEEN.finditer(buffer, begin)]
        if places or begin == 0:
            return list(dict.fromkeys((*places[: -_MOST_TRIED - 1 : -1], *places[:1])))
        window *= 8


def _closed(buffer: bytes, begin: int) -> tuple[bytes, bytes | None]:
    """What stands before and behind the end of the list, looked for from a place between two events on."""
    depth = 0
    for found in _MARKS.finditer(buffer, begin):
        mark = found[0][:1]
        if mark in b"[{":
            depth += 1
        elif mark == b"]" and depth == 0:
            return buffer[: found.start()], buffer[found.end() :]
        elif mark in b"]}":
            depth -= 1
    return buffer, None
