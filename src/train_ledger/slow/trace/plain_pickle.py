"""What stands first in a pickle of plain values that is too large to be loaded as a whole?

The pickle's own instructions are followed one by one, so that a part of it can be taken; those that would
call or import anything are refused, as everything that plain values do not need.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["PlainPickleError", "first_value"]


class PlainPickleError(ValueError):
    """It is damaged, begins with something else, or asks for more than plain values; the text says which."""


def first_value(beginning: bytes, name: str) -> Any:
    """The value of `name`, the first key of the dictionary that is pickled, by the pickle's first bytes.

    Raises PlainPickleError, also where the value does not end within these bytes.
    """
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(io.BytesIO(beginning)):
            machine.do(opcode.name, argument)
            if machine.depth == 1 and len(machine.stack) == 3:
                break
    except (ValueError, LookupError, TypeError) as error:
        if isinstance(error, PlainPickleError):
            raise
        raise PlainPickleError(f"damaged, or longer than {len(beginning) >> 20} MiB: {error}") from error
    if machine.depth != 1 or machine.stack[:1] != [name]:
        raise PlainPickleError(f"does not begin with {name!r}")
    return machine.stack[1]


class _Machine:
    """Values that wait to be put together; `depth` is how many marks lie below those in `stack`."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._below: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._steps: dict[str, Callable[[Any], None]] = {
            "MARK": self._mark,
            "MEMOIZE": lambda _: self._memo.__setitem__(len(self._memo), self.stack[-1]),
            "EMPTY_DICT": lambda _: self.stack.append({}),
            "EMPTY_LIST": lambda _: self.stack.append([]),
            "EMPTY_TUPLE": lambda _: self.stack.append(()),
            "NONE": lambda _: self.stack.append(None),
            "NEWTRUE": lambda _: self.stack.append(True),
            "NEWFALSE": lambda _: self.stack.append(False),
            "APPEND": lambda _: self._extend([self.stack.pop()]),
            "APPENDS": lambda _: self._extend(self._since_mark()),
            "SETITEM": lambda _: self._update([self.stack.pop(-2), self.stack.pop()]),
            "SETITEMS": lambda _: self._update(self._since_mark()),
            "TUPLE": lambda _: self.stack.append(tuple(self._since_mark())),
        }
        for name in ("BINPUT", "LONG_BINPUT", "PUT"):
            self._steps[name] = lambda number: self._memo.__setitem__(number, self.stack[-1])
        for name in ("BINGET", "LONG_BINGET", "GET"):
            self._steps[name] = lambda number: self.stack.append(self._memo[number])
        for length in (1, 2, 3):
            self._steps[f"TUPLE{length}"] = partial(self._tuple, length)
        for name in ("PROTO", "FRAME"):
            self._steps[name] = lambda _: None
        for name in _VALUES:
            self._steps[name] = self.stack_append

    @property
    def depth(self) -> int:
        return len(self._below)

    def do(self, name: str, argument: Any) -> None:
        """Follow one instruction."""
        step = self._steps.get(name)
        if step is None:
            raise PlainPickleError(f"refused: {name} {str(argument or '')[:80]}; nothing of it was run")
        step(argument)

    def stack_append(self, value: Any) -> None:
        self.stack.append(value)

    def _mark(self, _: Any) -> None:
        self._below.append(self.stack)
        self.stack = []

    def _since_mark(self) -> list[Any]:
        values, self.stack = self.stack, self._below.pop()
        return values

    def _tuple(self, length: int, _: Any) -> None:
        values = self.stack[-length:]
        del self.stack[-length:]
        self.stack.append(tuple(values))

    def _extend(self, values: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            raise PlainPickleError("adds to something that is no list")
        self.stack[-1].extend(values)

    def _update(self, values: list[Any]) -> None:
        if not isinstance(self.stack[-1], dict):
            raise PlainPickleError("sets keys of something that is no dictionary")
        self.stack[-1].update(zip(values[::2], values[1::2], strict=True))


_VALUES = (
    "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "BININT", "BININT1", "BININT2", "LONG1", "LONG4",
    "BINFLOAT", "SHORT_BINBYTES", "BINBYTES",
)  # fmt: skip
