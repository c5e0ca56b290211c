"""On which figures does a cost rest, and where does each come from?

Each has one name, and a value that stands where neither the run nor the person gives another: those of the
seed article's chapter 7, a job of 1024 GPUs at 2.5 dollars that fails every three hours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["FIGURES", "Figure", "FigureError", "Figures", "Known", "Origin", "assumed", "given"]

Origin: TypeAlias = Literal["measured", "configured", "given", "assumed"]
"""Measured on the run, said by its configuration, said by the person who asks, or nobody's: a default."""

_LENGTH = re.compile(r"(?P<number>[^a-z]+)(?P<unit>s|min|h|d)?\Z")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_LARGEST = 1e12


class FigureError(Exception):
    """A figure that was given is none; the text says which are."""


@dataclass(frozen=True, slots=True)
class Known:
    """One figure that a cost can rest on: its default, its unit and its meaning.

    `zero` where it may be 0, `whole` where it is counted; `most` is the largest that there is.
    """

    default: float
    unit: str
    meaning: str
    zero: bool = False
    whole: bool = False
    most: float = _LARGEST


@dataclass(frozen=True, slots=True)
class Figure:
    """A value and where it comes from; `by` says of what it was measured."""

    value: float
    origin: Origin = "assumed"
    by: str = ""


Figures: TypeAlias = Mapping[str, Figure]

FIGURES: Mapping[str, Known] = {
    "world_size": Known(1024, "GPUs", "how many GPUs the run holds", whole=True),
    "price": Known(2.5, "per GPU-hour", "what a GPU costs in an hour", zero=True),
    "mfu": Known(42.0, "%", "the MFU that one more point is added to", most=100.0),
    "job": Known(30 * 86_400.0, "s", "how long the job runs"),
    "mtbi": Known(3 * 3600.0, "s", "mean time between interruptions, the M of Young's formula"),
    "checkpoint": Known(45.0, "s", "what one save costs the training, the δ of Young's formula", zero=True),
    "interval": Known(24 * 60.0, "s", "from one save to the next"),
    "detect": Known(100.0, "s", "until it is noticed, by an alert on the step count", zero=True),
    "detect_without": Known(600.0, "s", "until it is noticed, by NCCL's default timeout", zero=True),
    "dump": Known(120.0, "s", "until the dumps are there", zero=True),
    "decide": Known(540.0, "s", "until somebody decided, with a runbook", zero=True),
    "decide_without": Known(1800.0, "s", "until somebody decided, without one", zero=True),
    "restart": Known(480.0, "s", "restart and rendezvous", zero=True),
    "load": Known(420.0, "s", "loading of the checkpoint", zero=True),
    "redo": Known(1440.0, "s", "until the step once reached is passed", zero=True),
}
"""By name, in the order in which they are shown; lengths of time may be given with their unit behind them."""


def assumed() -> dict[str, Figure]:
    """Every figure at its default."""
    return {name: Figure(known.default) for name, known in FIGURES.items()}


def given(text: str) -> dict[str, Figure]:
    """Figures as a person writes them: "world_size=1024,price=2.5,interval=24min".

    Raises FigureError for an unknown name, a value that is no positive number, and a unit that is none.

    >>> given("interval=24min")["interval"].value
    1440.0
    """
    found: dict[str, Figure] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in FIGURES:
            raise FigureError(f"--assume {part}: wanted is NAME=VALUE, with a name of {', '.join(FIGURES)}")
        found[name] = Figure(_value(name, value), "given")
    return found


def _value(name: str, text: str) -> float:
    known = FIGURES[name]
    match = _LENGTH.match(text)
    unit = match["unit"] if match else None
    value = _number(match["number"]) * (_SECONDS[unit] if unit else 1.0) if match else math.nan
    least = 0.0 if known.zero else 1e-9
    is_one = least <= value <= known.most and (not known.whole or value.is_integer())
    if not is_one or (unit and known.unit != "s"):
        length = ", or with min, h or d behind it" if known.unit == "s" else ""
        kind = ", a whole number" if known.whole else ""
        kind += f", at most {known.most:.0f}" if known.most < _LARGEST else ""
        said = f"{known.meaning}{kind}, in {known.unit}{length}, is wanted"
        raise FigureError(f"--assume {name}={text}: {said}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
