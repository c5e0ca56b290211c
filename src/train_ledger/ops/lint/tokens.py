"""Of which words is a PromQL expression made?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = ["PromqlError", "Token", "tokens"]

Kind = Literal["name", "number", "duration", "string", "symbol", "end"]

_LONGEST = 100_000
_PATTERN = re.compile(
    r"""\s+|\#[^\n]*
    |(?P<duration>(?:\d+(?:ms|[smhdwy]))+(?![A-Za-z0-9_]))
    |(?P<number>0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?:Inf|NaN)\b)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
    |(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
    |(?P<symbol>=~|!~|!=|==|<=|>=|[-+*/%^=<>(){}\[\],@:])""",
    re.VERBOSE,
)


class PromqlError(ValueError):
    """An expression that is no PromQL as far as it is understood here; the text says where."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word; `text` of a string is what stands between its quotes."""

    kind: Kind
    text: str
    place: int


def tokens(expression: str) -> Iterator[Token]:
    """The words of an expression, and one of kind "end". Raises PromqlError.

    >>> [token.text for token in tokens('rate(x{run="a"}[5m])')]
    ['rate', '(', 'x', '{', 'run', '=', 'a', '}', '[', '5m', ']', ')', '']
    """
    if len(expression) > _LONGEST:
        raise PromqlError(f"is longer than {_LONGEST} characters")
    place = 0
    while place < len(expression):
        match = _PATTERN.match(expression, place)
        if match is None:
            raise PromqlError(f"cannot be read from {expression[place : place + 20]!r} on")
        if kind := match.lastgroup:
            text = match[0][1:-1] if kind == "string" else match[0]
            yield Token(kind, text, place)  # type: ignore[arg-type]  # the groups are named so
        place = match.end()
    yield Token("end", "", place)
