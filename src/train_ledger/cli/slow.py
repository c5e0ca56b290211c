"""`train-ledger slow`: who drags, or what changed?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.cli.options import At, Html, Json, Run

if TYPE_CHECKING:
    from train_ledger.ops.slow.wanted import Wanted

__all__ = ["slow"]


def slow(
    run: Run,
    at: At = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="STEP|T",
            help="Compare the steps from here on with those before: a step, or a time as --at takes it.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|STEPS",
            help="Compare with another run directory, or with these steps of this run, like 100-300.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    html: Html = None,
) -> int:
    """Say who drags a slow run, since when, and why.

    A rank is judged by its own work beside its peers', never by step times, which are the same on all. Each
    suspect – data, fragmented memory, logging, clocks, links, checkpoints, garbage collection, host memory,
    communication – is confirmed, ruled out or not observed, and by which figure.

    \b
    Example:
      train-ledger slow runs/r42
      train-ledger slow runs/r42 --since 51300 --json
      train-ledger slow runs/r42 --baseline runs/r41
      train-ledger slow runs/r42 --baseline 100-300
    """
    from train_ledger import config
    from train_ledger.cli.output import answered
    from train_ledger.ops.slow import look_at, picture_at
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    settings = config.load(run_dir)
    wanted = _wanted(since, baseline)
    answer = look_at(run_dir, settings, wanted, at=at)
    picture = None if html is None else picture_at(run_dir, settings, answer, at)
    return answered(
        answer,
        json=json,
        html=html,
        verb="slow",
        title=str(run),
        at=at,
        currency=settings.cost.currency,
        picture=picture,
    )


def _wanted(since: str | None, baseline: str | None) -> Wanted:
    """What is to be compared, as it was written; raises BadInputError for what is neither."""
    from train_ledger.cli.leave import BadInputError
    from train_ledger.ops.slow.wanted import Wanted

    if since is not None and baseline is not None:
        raise BadInputError("--since and --baseline both say what to compare with; give one of them")
    step, since_t = _since(since) if since is not None else (None, None)
    steps, path = _baseline(baseline) if baseline is not None else (None, None)
    return Wanted(since_step=step, since_t=since_t, steps=steps, other_run=path)


def _since(text: str) -> tuple[int | None, float | None]:
    """A whole number is a step, unless it is so large that it is a time."""
    from train_ledger.cli.options import moment

    if text.isdecimal() and int(text) < _FIRST_MOMENT:
        return int(text), None
    return None, moment(text)


def _baseline(text: str) -> tuple[tuple[int, int] | None, Path | None]:
    from train_ledger.cli.leave import BadInputError

    first, dash, last = text.partition("-")
    if dash and first.isdecimal() and last.isdecimal() and len(text) < _LONGEST_STEPS:
        if int(first) > int(last):
            raise BadInputError(f"--baseline {text}: the first step is after the last")
        return (int(first), int(last)), None
    return None, Path(text)


_FIRST_MOMENT = 1_000_000_000
_LONGEST_STEPS = 30
