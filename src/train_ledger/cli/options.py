"""What do the options that several verbs share mean?"""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = ["At", "Html", "HtmlOrOutput", "Json", "Output", "Run", "moment", "seconds"]


_LATEST_T = 1e11
"""Unix seconds of the year 5138; what is larger are milliseconds."""

_SHORTEST_S = 0.1
_LONGEST_S = 86_400.0


def moment(text: str) -> float:
    """Unix seconds of "1796007600.5" or of an ISO 8601 time; without a zone it is this machine's own.

    Raises typer.BadParameter.
    """
    try:
        t = float(text)
    except ValueError:
        t = _iso(text)
    if not 0 <= t < _LATEST_T:
        raise typer.BadParameter(f"{text} is no moment")
    return t


def seconds(text: str | float) -> float:
    """A length of time from a tenth of a second to a day; raises typer.BadParameter for any other."""
    try:
        length_s = float(text)
    except ValueError:
        length_s = math.nan
    if not _SHORTEST_S <= length_s <= _LONGEST_S:
        raise typer.BadParameter(f"{text} is not from {_SHORTEST_S:g} to {_LONGEST_S:g} seconds")
    return length_s


def _iso(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        wanted = "unix seconds or ISO 8601, like 2026-11-30T03:12:00+00:00"
        raise typer.BadParameter(f"{text!r} is no time; wanted are {wanted}") from error


Run: TypeAlias = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.", show_default=False)]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")]
Html: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="Write the answer as one HTML file, too.", show_default=False
    ),
]
HtmlOrOutput: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--html",
        "--output",
        metavar="FILE",
        help="Write the answer as one HTML file, too.",
        show_default=False,
    ),
]
"""Of the verbs that have called it --output; both names mean the same."""
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write to this file instead: FILE.md, or a page as FILE.html.",
        show_default=False,
    ),
]
At: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--at",
        metavar="T",
        parser=moment,
        help="As known at this time: unix seconds or ISO 8601 (without a zone: this machine's).",
        show_default=False,
    ),
]
