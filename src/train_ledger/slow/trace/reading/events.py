"""What does one event of a trace say?

Decoded by the million: of an event only what is asked for later, with every number as it was written. Times
are nanoseconds from here on: a time in microseconds since 1970 with three decimals has more digits than a
floating-point number holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from train_ledger.slow.trace.reading.loss import Losses

__all__ = [
    "LARGEST_NS",
    "NO_ARGUMENTS",
    "Arguments",
    "RawEvent",
    "decoded",
    "decoded_if_whole",
    "nanoseconds",
]


class Arguments(msgspec.Struct, rename={
    "external_id": "External id", "collective": "Collective name", "group": "Process Group Name",
    "group_ranks": "Process Group Ranks", "described": "Process Group Description",
    "elements": "In msg nelems", "number": "Seq", "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
}):  # fmt: skip
    """The arguments that are looked at; of any type, since profilers differ."""

    correlation: Any = None
    external_id: Any = None
    stream: Any = None
    collective: Any = None
    group: Any = None
    group_ranks: Any = None
    described: Any = None
    elements: Any = None
    dtype: Any = None
    number: Any = None
    sequence: Any = None
    forward_thread: Any = None


_NOTHING = msgspec.Raw(b"null")


class RawEvent(msgspec.Struct):
    """Times and arguments are kept as they are written: of most events nobody asks for them."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING
    args: msgspec.Raw = _NOTHING

    def arguments(self) -> Arguments:
        """Its arguments, none where they are of no kind that is looked at."""
        try:
            return _decode_arguments(self.args) or NO_ARGUMENTS
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return NO_ARGUMENTS


NO_ARGUMENTS = Arguments()
_decode_arguments = msgspec.json.Decoder(Arguments | None).decode
_loosely = json.JSONDecoder(strict=False, parse_float=str)
_decode = msgspec.json.Decoder(list[RawEvent]).decode
_NUMBERS_THAT_ARE_NONE = re.compile(
    rb"(?<=[:\[,\s])(-?(?:inf(?:inity)?|nan)|-?1\.#\w{3})(?=[\s,}\]])", re.IGNORECASE
)
_NO_VALUE = re.compile(rb'("[^"\\\n]{1,80}"\s{0,20}:\s{0,20})(?=[,}])')
_CONTROL = bytes(it for it in range(32) if it not in b"\t\n\r")
_AS_SPACE = bytes.maketrans(_CONTROL, b" " * len(_CONTROL))
_BAD_ESCAPE = re.compile(rb'\\(?!["\\/bfnrtu])|\\u(?![0-9a-fA-F]{4})')
_LINE_BREAK_IN_NAME = re.compile(rb'("name"\s{0,20}:\s{0,20}"[^"\\\n]{0,4000})[\r\n]')
_MOST_DAMAGED = 10_000
"""So many events in a row that cannot be read, and the rest of their piece is not tried."""

_STARTS = re.compile(rb'\{\s{0,200}"(?:ph|name|cat|ts|pid|tid|id|args|dur|bp|s)"')
_MENDED = (
    (_NUMBERS_THAT_ARE_NONE, rb"null", "a number that is inf or nan"),
    (_NO_VALUE, rb"\1null", "a value that is missing"),
    (_LINE_BREAK_IN_NAME, rb"\1 ", "a line break in a name"),
    (_BAD_ESCAPE, rb"\\\\", "a bad escape"),
)


def nanoseconds(written: bytes | msgspec.Raw) -> int | None:
    """A time of an event as it is written, in microseconds; None for what is no time.

    >>> nanoseconds(b"1.5"), nanoseconds(b'"2"'), nanoseconds(b"null"), nanoseconds(b"1712195495520883.197")
    (1500, 2000, None, 1712195495520883197)
    """
    text = bytes(written)
    if text[-4:-3] == b".":  # as profilers write it, and so by the million
        try:
            exact = int(text[:-4] + text[-3:])
        except ValueError:
            return _oddly_written(text)
        return exact if -LARGEST_NS < exact < LARGEST_NS else None
    whole, point, part = text.partition(b".")
    try:
        if not point:
            value = int(whole) * 1000
        elif len(part) <= _DECIMALS and part.isdigit():
            value = int(whole + part.ljust(_DECIMALS, b"0"))  # a float has not so many digits
        else:
            return _oddly_written(text)
    except ValueError:
        return _oddly_written(text)
    return value if -LARGEST_NS < value < LARGEST_NS else None


_DECIMALS = 3
LARGEST_NS = 9 * 10**18
"""The year 2255; what is larger is in other units, or none."""


def _oddly_written(text: bytes) -> int | None:
    """As a string, with an exponent, or with more than three decimals."""
    try:
        value = Decimal(text.strip(b'" ').decode("ascii", "replace")) * 1000
    except ArithmeticError:
        return None
    return round(value) if value.is_finite() and abs(value) < LARGEST_NS else None


def decoded_if_whole(piece: bytes) -> list[RawEvent] | None:
    """The events of a piece, a list without its brackets; None where it is not a list of such events."""
    try:
        return _decode(b"[" + piece + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decoded(piece: bytes, losses: Losses) -> list[RawEvent]:
    """The events of a damaged piece; what cannot be read of it is counted."""
    mended = _mended(piece, losses)
    events = decoded_if_whole(mended)
    return list(_one_by_one(mended, losses)) if events is None else events


def _mended(piece: bytes, losses: Losses) -> bytes:
    """With what profilers are known to write wrongly put right."""
    if controls := len(piece) - len(piece.translate(None, _CONTROL)):
        at = next(place for place, it in enumerate(piece) if it in _CONTROL)
        losses.count("a control character", controls, at=at)
        piece = piece.translate(_AS_SPACE)
    for pattern, instead, reason in _MENDED:
        first = pattern.search(piece)
        if first:
            piece, times = pattern.subn(instead, piece)
            losses.count(reason, times, at=first.start())
    try:
        piece.decode()
    except UnicodeDecodeError as error:
        losses.count("bytes that are no UTF-8", at=error.start)
        piece = piece.decode("utf-8", "replace").encode()
    return piece


def _one_by_one(piece: bytes, losses: Losses) -> Iterator[RawEvent]:
    """Each event for itself: where one is damaged, the next begins where it looks as if one did."""
    starts = [found.start() for found in _STARTS.finditer(piece)]
    place = damaged = 0
    while place < len(starts):
        at, left = starts[place], len(starts) - place
        if damaged > _MOST_DAMAGED:
            losses.count("an event that is no JSON", left, events=left, at=at)
            return
        event, place = _next_event(piece, starts, place, losses)
        damaged = damaged + 1 if event is None else 0
        if event is None:
            losses.count("an event that is no JSON", events=1, at=at)
        else:
            yield event


def _next_event(piece: bytes, starts: list[int], place: int, losses: Losses) -> tuple[RawEvent | None, int]:
    """The event that begins there, tried up to the next few beginnings: its arguments may look like one."""
    for end in range(place + 1, min(place + 4, len(starts) + 1)):
        stop = starts[end] if end < len(starts) else len(piece)
        text = piece[starts[place] : stop].rstrip().removesuffix(b",").rstrip()
        try:
            return msgspec.json.decode(text, type=RawEvent), end
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            loose = _loose(text, losses)
            if loose is not None:
                return loose, end
    return None, place + 1


def _loose(text: bytes, losses: Losses) -> RawEvent | None:
    """An event whose arguments are of no kind that is looked at, or behind which something else stands."""
    whole = text.decode("utf-8", "replace")
    try:
        found, end = _loosely.raw_decode(whole)
    except (ValueError, RecursionError):
        return None
    if whole[end:].lstrip(", \t\r\n").startswith("{"):
        losses.count("an event that does not begin as one", events=1)
    if not isinstance(found, dict):
        return None
    ph, cat, name = (str(found.get(key) or "") for key in ("ph", "cat", "name"))
    ts, dur, args = (_raw(found.get(key)) for key in ("ts", "dur", "args"))
    return RawEvent(ph, cat, name, found.get("pid"), found.get("tid"), ts, dur, args)


def _raw(value: object) -> msgspec.Raw:
    try:
        return msgspec.Raw(json.dumps(value).encode())
    except (ValueError, RecursionError):
        return _NOTHING
