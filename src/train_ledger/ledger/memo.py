"""How is a fold put down, to be taken up by another process?

As plain values, not as code: numbers, text, sequences, and objects of the classes that the modules of this
room define, by their attributes. It is taken up by the same code alone: where one of these modules has
changed, its objects may mean something else.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import deque
from collections.abc import Iterator
from copy import copy
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import train_ledger
from train_ledger import facts
from train_ledger.ledger import (
    attempts,
    clock,
    course,
    effective,
    fold,
    host_clocks,
    losses,
    pace,
    phases,
    positions,
    rank,
    rank_process,
    ranks,
    recovery,
    saves,
    speakers,
    starts,
)
from train_ledger.ledger.fold import Fold
from train_ledger.ledger.hardware import clocks, counters, gpu, hardware, kernel, port, recent, standing
from train_ledger.ledger.trends import (
    figures,
    fragmentation,
    grad_norms,
    mfu,
    own_work,
    rank_trends,
    run_trends,
    slots,
    stages,
    step_times,
    waits,
)

__all__ = ["MemoError", "code_version", "from_plain", "put_down", "take_up", "to_plain"]

_MODULES: tuple[ModuleType, ...] = (
    *(attempts, clock, facts, fold, host_clocks, losses, pace, phases, saves, starts),
    *(rank, rank_process, ranks, speakers),
    *(course, effective, positions, recovery),
    *(clocks, counters, gpu, hardware, kernel, port, recent, standing),
    *(figures, fragmentation, grad_norms, mfu, own_work, rank_trends, run_trends, slots, stages),
    *(step_times, waits),
)
_DERIVED = frozenset({"_shown"})
"""Attributes that are worked out again when they are asked for."""

_GIVEN = frozenset({"run", "_alerts", "_config", "_given", "_is_part", "_started", "_world_size"})
"""What a fold is made with, and takes from the configuration and run.json of now."""

_SCALARS = frozenset({type(None), bool, float, str, bytes})
_SEQUENCES = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_LARGEST = 1 << 63
_NONSENSE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""What values of wrong kinds raise where they are used: somebody else wrote them."""


class MemoError(Exception):
    """What was put down cannot be taken up; the text says why."""


def to_plain(value: object) -> Any:
    """Something that msgpack can carry; raises MemoError for an object of a class that has no place here.

    >>> from_plain(to_plain({(0, 1): deque([1.5, 10**30], maxlen=2)}))
    {(0, 1): deque([1.5, 1000000000000000000000000000000], maxlen=2)}
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, int):
        return value if -_LARGEST <= value < _LARGEST else ["int", str(value)]
    if isinstance(value, dict):
        return ["dict", *map(to_plain, chain.from_iterable(value.items()))]
    if isinstance(value, deque):
        return ["deque", value.maxlen, *map(to_plain, value)]
    if kind.__name__ in _SEQUENCES and isinstance(value, list | tuple | set | frozenset):
        return [kind.__name__, *map(to_plain, value)]
    if _classes().get(_name(kind)) is not kind:
        raise MemoError(f"{_name(kind)} cannot be put down")
    return [_name(kind), *chain.from_iterable((name, to_plain(it)) for name, it in _attributes(value))]


def from_plain(plain: Any) -> Any:
    """What `to_plain` was given; raises MemoError for what it never makes."""
    try:
        return _made(plain)
    except _NONSENSE as error:
        raise MemoError("is damaged") from error


def _made(plain: Any) -> Any:
    if not isinstance(plain, list):
        return plain
    kind, *rest = plain
    if kind == "int":
        return int(rest[0])
    if kind == "dict":
        values = map(_made, rest)
        return dict(zip(values, values, strict=True))
    if kind == "deque":
        return deque(map(_made, rest[1:]), maxlen=rest[0])
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](map(_made, rest))
    return _object(kind, rest)


def put_down(fold: Fold) -> dict[str, object]:
    """The parts of a fold that facts were folded into."""
    return {name: part for name, part in vars(fold).items() if name not in _GIVEN}


def take_up(fold: Fold, parts: object) -> None:
    """Let a new fold go on with the parts of another one; raises MemoError where they make no fold."""
    if not isinstance(parts, dict) or parts.keys() != put_down(fold).keys():
        raise MemoError("is damaged")
    trial = copy(fold)
    vars(trial).update(parts)
    try:
        trial.state(trial.carried(0.0))
    except _NONSENSE as error:
        raise MemoError("is damaged") from error
    vars(fold).update(parts)


def _object(name: str, rest: list[Any]) -> object:
    kind = _classes().get(name)
    if kind is None:
        raise MemoError(f"speaks of {name}")
    made: Any = object.__new__(kind)
    for attribute, value in zip(rest[::2], rest[1::2], strict=True):
        object.__setattr__(made, attribute, _made(value))  # facts are frozen
    for _ in _attributes(made):
        pass  # one that is missing raises
    return made


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    slots = chain.from_iterable(getattr(kind, "__slots__", ()) for kind in type(value).__mro__)
    for name in (*slots, *getattr(value, "__dict__", ())):
        yield name, None if name in _DERIVED else getattr(value, name)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


@cache
def _classes() -> dict[str, type]:
    return {
        _name(kind): kind
        for module in _MODULES
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__
    }


@cache
def code_version() -> str:
    """Which code the plain values belong to."""
    digest = hashlib.sha256()
    for module in _MODULES:
        digest.update(Path(inspect.getfile(module)).read_bytes())  # inspect.getsource holds all text for good
    return f"{train_ledger.__version__} {digest.hexdigest()[:16]}"
