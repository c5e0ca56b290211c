"""What does one event of a trace say?

Decoded by the million: of an event only what is asked for later, with every number as it was written. Times
are nanoseconds from here on: a time in microseconds since 1970 with three decimals has more digits than a
floating-point number holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from train_ledger.slow.trace.reading.loss import Losses

__all__ = ["Arguments", "RawEvent", "decoded", "decoded_if_whole", "nanoseconds"]


class Arguments(msgspec.Struct, rename={
    "external_id": "External id", "collective": "Collective name", "group": "Process Group Name",
    "group_ranks": "Process Group Ranks", "elements": "In msg nelems", "dtype": "dtype",
    "sequence": "Sequence number", "python_id": "Python id", "python_parent": "Python parent id",
    "graph_node": "graph node id",
}):  # fmt: skip
    """The arguments that are looked at; of any type, since profilers differ."""

    correlation: Any = None
    external_id: Any = None
    stream: Any = None
    device: Any = None
    bytes: Any = None
    collective: Any = None
    group: Any = None
    group_ranks: Any = None
    elements: Any = None
    dtype: Any = None
    sequence: Any = None
    python_id: Any = None
    python_parent: Any = None
    graph_node: Any = None


class RawEvent(msgspec.Struct):
    ph: Any = None
    cat: Any = ""
    name: Any = ""
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: Arguments | None = None


class _Nanoseconds(int):
    """A time that was written in microseconds, with more digits than a float has."""


_FLOAT_DIGITS = 15


def _number(text: str) -> float | _Nanoseconds:
    if len(text) <= _FLOAT_DIGITS or "e" in text or "E" in text:
        return float(text)
    whole, _, part = text.partition(".")
    return _Nanoseconds(int(whole + (part + "000")[:3]))


_loosely = json.JSONDecoder(strict=False)
_TOLD = ("correlation", "stream", "device", "external_id", "collective", "group")
_decode = msgspec.json.Decoder(list[RawEvent], float_hook=_number).decode
_NUMBERS_THAT_ARE_NONE = re.compile(
    rb"(?<=[:\[,\s])(-?(?:inf(?:inity)?|nan)|-?1\.#\w{3})(?=[\s,}\]])", re.IGNORECASE
)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BAD_ESCAPE = re.compile(rb'\\(?!["\\/bfnrtu])|\\u(?![0-9a-fA-F]{4})')
_LINE_BREAK_IN_NAME = re.compile(rb'("name"\s{0,20}:\s{0,20}"[^"\\\n]{0,4000})[\r\n]')
_STARTS = re.compile(rb'\{\s{0,200}"(?:ph|name|cat|ts|pid|tid|id|args|dur|bp|s)"')


def nanoseconds(value: object) -> int | None:
    """A time of an event; None for what is no time.

    >>> nanoseconds(1.5), nanoseconds("2"), nanoseconds(None), nanoseconds(float("inf"))
    (1500, 2000, None, None)
    """
    if isinstance(value, _Nanoseconds):
        return int(value)
    if isinstance(value, str):
        try:
            value = _number(value.strip())
        except ValueError:
            return None
        return nanoseconds(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return value * 1000 if abs(value) < 1 << 53 else None
    return round(value * 1000) if abs(value) < 1e16 else None


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
    piece, times = _NUMBERS_THAT_ARE_NONE.subn(b"null", piece)
    if times:
        losses.count("a number that is inf or nan", times)
    piece, times = _CONTROL.subn(b" ", piece)
    if times:
        losses.count("a control character", times)
    piece, times = _LINE_BREAK_IN_NAME.subn(rb"\1 ", piece)
    if times:
        losses.count("a line break in a name", times)
    piece, times = _BAD_ESCAPE.subn(rb"\\\\", piece)
    if times:
        losses.count("a bad escape", times)
    try:
        piece.decode()
    except UnicodeDecodeError:
        losses.count("bytes that are no UTF-8")
        piece = piece.decode("utf-8", "replace").encode()
    return piece


def _one_by_one(piece: bytes, losses: Losses) -> Iterator[RawEvent]:
    """Each event for itself: where one is damaged, the next begins where it looks as if one did."""
    starts = [found.start() for found in _STARTS.finditer(piece)]
    place = 0
    while place < len(starts):
        event, place = _next_event(piece, starts, place)
        if event is None:
            losses.count("an event that is no JSON", events=1)
        else:
            yield event


def _next_event(piece: bytes, starts: list[int], place: int) -> tuple[RawEvent | None, int]:
    """The event that begins there, tried up to the next few beginnings: its arguments may look like one."""
    for end in range(place + 1, min(place + 4, len(starts) + 1)):
        stop = starts[end] if end < len(starts) else len(piece)
        text = piece[starts[place] : stop].rstrip().removesuffix(b",").rstrip()
        try:
            return msgspec.json.decode(text, type=RawEvent), end
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            loose = _loose(text)
            if loose is not None:
                return loose, end
    return None, place + 1


def _loose(text: bytes) -> RawEvent | None:
    """An event whose arguments are of no kind that is looked at, or behind which something else stands."""
    try:
        found, _ = _loosely.raw_decode(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    plain = {name: found.get(name) for name in ("ph", "cat", "name", "pid", "tid", "ts", "dur")}
    args = found.get("args")
    known = {"external_id": "External id", "collective": "Collective name", "group": "Process Group Name"}
    told = {name: args.get(known.get(name, name)) for name in _TOLD} if isinstance(args, dict) else {}
    return RawEvent(**plain, args=Arguments(**told))
