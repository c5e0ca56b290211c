"""What may be taken of the values that a training script hands in?

Plain numbers and words, copied on the caller's thread, so that nobody changes them while they are written. No
code of the values' own runs – no `__str__`, no `__float__` of a tensor, which waits for the GPU – so that
nothing here raises or blocks for what they are.
"""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any

from train_ledger.fields import written_number

__all__ = ["detail", "plain", "positive", "sound", "whole"]

_LARGEST_WHOLE = 1 << 63
_CHARACTERS = 10_000
_ITEMS = 10_000
_DEPTH = 12


def plain(value: object) -> float | int | None:
    """`value` where it is a plain number, else None.

    A tensor is never asked for its number, since that waits for the GPU. Booleans are no numbers, as for a
    reader. A subclass of float or int – numpy's float64 is one – is taken by its base, so that no foreign
    `__float__` runs; the other numbers of numpy lie in the host's memory too and are taken.

    >>> plain(2), plain(0.5), plain(True), plain("2"), plain(None)
    (2, 0.5, None, None, None)
    """
    kind = type(value)
    if kind is float or kind is int:
        return value  # type: ignore[return-value]
    # By the type and never by isinstance(), which asks the value for its `__class__`.
    if issubclass(kind, float):
        return float.__float__(value)  # type: ignore[arg-type]
    if issubclass(kind, int):
        return None if kind is bool else int.__index__(value)  # type: ignore[arg-type]
    return _of_another_library(value, kind)


def _of_another_library(value: Any, kind: type) -> float | int | None:
    """Of numpy, which says so by its module, and of those who registered their integers as such.

    Everything else that could become a number may be a tensor; `__index__` of one synchronises its GPU.
    """
    try:
        if kind.__module__ == "numpy":
            of = value.dtype.kind if value.ndim == 0 else ""
            return operator.index(value) if of in ("i", "u") else float(value) if of == "f" else None
        if issubclass(kind, numbers.Integral):
            return operator.index(value)
    except (TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError):
        return None
    return None


def whole(value: object) -> int | None:
    """`value` as a plain int where it is a whole number that a reader takes for a step or a rank, else None.

    >>> whole(3), whole(3.0), whole(3.5), whole(float("nan")), whole("3"), whole(10**400)
    (3, 3, None, None, None, None)
    """
    number = plain(value)
    if number is None or not -_LARGEST_WHOLE <= number < _LARGEST_WHOLE or number != number // 1:
        return None
    return int(number)


def positive(value: object) -> float | None:
    """`value` as a float where it is a finite number above 0, else None.

    >>> positive(8), positive(0), positive("8"), positive(10**400), positive(float("nan"))
    (8.0, None, None, None, None)
    """
    number = plain(value)
    try:
        as_float = 0.0 if number is None else float(number)
    except OverflowError:
        return None
    return as_float if 0 < as_float < math.inf else None


def detail(value: object) -> Any:
    """What an event may carry: numbers, words, lists or objects of them; of anything else its type's name.

    A copy, whose size is limited; what is too deep or too much is told by its type's name as well.

    >>> detail({"dp": 2, "order": ("tp", "dp"), "loss": float("nan"), "dtype": object()})
    {'dp': 2, 'order': ['tp', 'dp'], 'loss': 'NaN', 'dtype': 'object'}
    """
    return _taken(value, _DEPTH, [_ITEMS])


def _taken(value: Any, depth: int, left: list[int]) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if issubclass(kind, str):
        return sound(value)
    number = plain(value)
    if number is not None:
        return _written(number)
    left[0] -= _size(value, kind)
    if depth and left[0] >= 0:
        copy = _copied(value, kind)
        if issubclass(kind, dict) and copy is not None:
            return {_key(key): _taken(item, depth - 1, left) for key, item in copy.items()}
        if copy is not None:
            return [_taken(item, depth - 1, left) for item in copy]
    return kind.__name__


def _size(value: Any, kind: type) -> int:
    base = next((base for base in (dict, list, tuple) if issubclass(kind, base)), None)
    return 1 if base is None else base.__len__(value) + 1


def _copied(value: Any, kind: type) -> Any:
    """The container by its base, so that another thread may change it from here on; None for what is none."""
    try:
        if issubclass(kind, dict):
            return dict.copy(value)
        if issubclass(kind, list):
            return list.copy(value)
        return tuple.__getitem__(value, slice(None)) if issubclass(kind, tuple) else None
    except RuntimeError:  # changed while it was copied
        return None


def _key(key: Any) -> str:
    taken = _taken(key, 0, [0])
    return taken if type(taken) is str else str(taken)


def sound(text: str) -> str:
    r"""`text` as it can be written and read: of bounded length and without halves of surrogate pairs.

    Python puts such halves into the name of a file that is no UTF-8; no reader takes a line that holds one.

    >>> sound("caf\udce9.bin")
    'caf\\udce9.bin'
    """
    text = str.__str__(text)[:_CHARACTERS]
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text


def _written(value: float) -> float | str:
    """As JSON can hold it: readers hold floats, and Python prints no integer of thousands of digits."""
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf if value > 0 else -math.inf
    return value if math.isfinite(as_float) else written_number(as_float)
