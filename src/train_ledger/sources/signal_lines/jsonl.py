"""What does one signal line say?

A line is one JSON object as `train_ledger.fields` describes it. Whatever else stands in a file is counted by
reason and never raises: a wrong line says nothing about its neighbours.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from train_ledger.facts import Event, Step
from train_ledger.fields import (
    FIELDS,
    LARGEST_ATTEMPT,
    LARGEST_WORLD_SIZE,
    WORDS,
    read_number,
    read_world_size,
)

__all__ = ["LARGEST_STEP", "LATEST_T", "SignalDecoder"]

_OWN_KEYS = ("t", "step", "rank", "attempt", "event", *WORDS)
LATEST_T = 1e11
"""Unix seconds of the year 5138: what is larger are milliseconds, or no time at all."""

_NUMBERS = frozenset({float, int})
LARGEST_STEP = (1 << 63) - 1
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_decode = msgspec.json.Decoder().decode


_Taken = TypeVar("_Taken")


class _BadLineError(Exception):
    """Carries the reason by which the line is counted."""


class SignalDecoder:
    """Turns signal lines into facts and counts, in `bad_lines`, what it could not take.

    Reasons: not_json, not_object, missing_field, bad_number (the line is not taken), bad_value (the line is
    taken without a known field whose value is none that it can have), and not_utf8 (the line is taken, with
    replacement characters for the bytes that are no text). `where` tells of each where it was met last.
    """

    def __init__(self) -> None:
        self.bad_lines: Counter[str] = Counter()
        self.where: dict[str, str] = {}
        self.last_problem: str | None = None

    def decode(
        self, data: bytes, source: str = "", *, rank: int | None = None, host: str | None = None
    ) -> Step | Event | None:
        """The fact of one line, or None for a blank or a bad one.

        `rank` stands in where the line says none (the file's name knows it), `host` is where the rank runs.

        >>> SignalDecoder().decode(b'{"t": 2.5, "step": 41, "rank": 5, "loss": "NaN", "host": "n1"}')
        Step(t=2.5, step=41, rank=5, attempt=0, host=None, source='', values={'loss': nan})
        """
        return self._taken(data, source, lambda line: self._fact(line, source, rank, host))

    def place(self, data: bytes, source: str = "") -> tuple[int, str | None] | None:
        """(rank, its host) by a line of ranks.jsonl, or None for a blank or a bad one.

        >>> SignalDecoder().place(b'{"t": 2.5, "rank": 5, "host": "n1", "gpu": 5}')
        (5, 'n1')
        """
        return self._taken(data, source, lambda line: (_rank(line, None), _host(line, None)))

    def _taken(self, data: bytes, source: str, take: Callable[[dict[str, Any]], _Taken]) -> _Taken | None:
        if not data or data.isspace():
            return None
        try:
            return take(self._json_object(data, source))
        except _BadLineError as problem:
            self._count(str(problem), source)
            return None

    def _json_object(self, data: bytes, source: str) -> dict[str, Any]:
        try:
            line = _decode(data)
        except (msgspec.DecodeError, RecursionError):
            line, is_text = _lenient(data)
            if not is_text:
                self._count("not_utf8", source)
        if not isinstance(line, dict):
            raise _BadLineError("not_object")
        return line

    def _fact(self, line: dict[str, Any], source: str, rank: int | None, host: str | None) -> Step | Event:
        t = _time(line)
        rank = _rank(line, rank)
        attempt = _whole(line, "attempt", 0, largest=LARGEST_ATTEMPT)
        if "event" in line:
            name = line["event"]
            if not isinstance(name, str):
                raise _BadLineError("missing_field")
            step = _whole(line, "step") if line.get("step") is not None else None
            details = {key: value for key, value in line.items() if key not in _OWN_KEYS}
            if details.get("world_size") is not None and read_world_size(details["world_size"]) is None:
                self._count("bad_value of world_size", source)
                del details["world_size"]
            return Event(t, name, rank, step, attempt, _host(line, host), source, details)
        return Step(t, _whole(line, "step"), rank, attempt, host, source, self._values(line, source))

    def _values(self, line: dict[str, Any], source: str) -> dict[str, float]:
        """The numbers among the fields; the usual line holds nothing else and is taken in one go."""
        for key in _OWN_KEYS:
            line.pop(key, None)
        if _NUMBERS.issuperset(map(type, line.values())):
            try:
                return dict(zip(line, map(float, line.values()), strict=True))
            except OverflowError:
                pass  # an integer beyond a float, taken below
        return {
            key: number
            for key, value in line.items()
            if (number := self._number(key, value, source)) is not None
        }

    def _number(self, key: str, value: object, source: str) -> float | None:
        number = read_number(value)
        if number is None and value is not None and key in FIELDS:
            self._count(f"bad_value of {key}", source)
        return number

    def _count(self, problem: str, source: str) -> None:
        reason, _, field = problem.partition(" ")
        self.bad_lines[reason] += 1
        self.where[reason] = f"{source}: {field.removeprefix('of ')}" if field else source
        self.last_problem = f"{source}: {problem}"


def _lenient(data: bytes) -> tuple[Any, bool]:
    """The value, and whether all of it is text: an exception's message may hold a file name that is none.

    Bare NaN and Infinity, a byte order mark and numbers beyond a float are taken too.
    """
    text = data.decode("utf-8-sig", "replace")
    try:
        line = json.loads(text)
        whole = json.dumps(line, ensure_ascii=False)
        if _HALF_A_PAIR.search(whole):  # could neither be shown nor kept
            return json.loads(_HALF_A_PAIR.sub("\N{REPLACEMENT CHARACTER}", whole)), False
    except (ValueError, RecursionError) as error:
        raise _BadLineError("not_json") from error
    return line, _is_utf8(data)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _time(line: dict[str, Any]) -> float:
    value = line.get("t")
    if value is None:
        raise _BadLineError("missing_field t")
    t = read_number(value)
    if t is None or not abs(t) < LATEST_T:
        raise _BadLineError("bad_number t")
    return t


def _rank(line: dict[str, Any], of_file: int | None) -> int:
    return _whole(line, "rank", of_file, largest=LARGEST_WORLD_SIZE - 1)


def _whole(line: dict[str, Any], key: str, default: int | None = None, *, largest: int = LARGEST_STEP) -> int:
    value = line.get(key)
    if value is None:
        value = default
    if type(value) is int and 0 <= value <= largest:
        return value
    if value is None:
        raise _BadLineError(f"missing_field {key}")
    number = read_number(value)
    if number is None or not 0 <= number <= largest or number != int(number) or int(number) > largest:
        raise _BadLineError(f"bad_number {key}")
    return int(number)


def _host(line: dict[str, Any], host: str | None) -> str | None:
    own = line.get("host")
    return own if isinstance(own, str) and own else host
