"""What do the options that several verbs share mean?"""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = ["At", "Html", "Json", "Run", "moment"]


def moment(text: str) -> float:
    """Unix seconds of "1796007600.5" or of an ISO 8601 time; without a zone it is this machine's own.

    Raises typer.BadParameter.
    """
    try:
        t = float(text)
    except ValueError:
        t = _iso(text)
    if not math.isfinite(t):
        raise typer.BadParameter(f"{text} is no moment")
    return t


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
