"""What does the page's script get to draw?

Curves over the steps, strips of ranks and GPUs, and marks, as small as a screen needs them: thinned out here,
never in the browser.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import numpy as np
from starlette.datastructures import QueryParams

from train_ledger.answer import SCHEMA
from train_ledger.fields import FIELDS
from train_ledger.ledger.history import CURVES, History, Mark, Strip, curves, gpu_strips, strips

__all__ = ["HistorySource", "PlotError", "curves_json", "plotly_marker", "plotly_script", "strips_json"]

_FEWEST_POINTS, _MOST_POINTS = 50, 2000
_MOST_MARKS = 400
_LATEST_STEP = 1 << 53
_LEVELS = 254
_NARROWEST = 0.1
"""A cell is a byte: 0 where nothing was told, else 1 to 255 from the lowest to the highest."""


class HistorySource(Protocol):
    """Who keeps the history: it stands still within `looked_at`; `progress` is None once all was read."""

    def looked_at(self) -> AbstractContextManager[History]: ...
    @property
    def progress(self) -> float | None: ...


class PlotError(ValueError):
    """What was asked for cannot be drawn; the text says why."""


@cache
def plotly_script() -> bytes:
    """plotly.js as the package `plotly` ships it."""
    return files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()


@cache
def plotly_marker() -> str | None:
    """The id by which plotly.js knows that the styles of its maps are there; None where it asks for none.

    Where an element has it, it puts no style into the page, which the page's policy would refuse.
    """
    found = re.search(rb'getElementById\("([0-9a-f]{64})"\)', plotly_script())
    return found[1].decode() if found else None


def curves_json(source: HistorySource, asked: QueryParams) -> str:
    """Curves, as `fields` (by comma), `first`, `last` and `points` ask for; raises PlotError.

    Each attempt has `steps` (the first of each bin of `width` steps), `times`, and of each field `low`,
    `mean` and `high` over ranks and steps, `worst` (whose is the highest) and `odd` (how many were no finite
    numbers).
    """
    fields = _fields(asked.get("fields"))
    first, last = _step(asked, "first"), _step(asked, "last")
    points = min(_MOST_POINTS, max(_FEWEST_POINTS, _step(asked, "points") or 800))
    with source.looked_at() as history:
        parts = curves(history, fields, first=first, last=last, points=points)
        marks = [_mark(mark) for mark in history.marks[-_MOST_MARKS:]]
        left_out = history.left_out
    answer = {
        "schema": SCHEMA,
        "fields": {name: _told_of(name) for name in fields},
        "attempts": [
            {
                "attempt": part.attempt,
                "width": part.width,
                "redone_to": part.redone_to,
                "steps": part.steps,
                "times": part.times,
                "curves": {
                    curve.field: {
                        "low": curve.low,
                        "mean": curve.mean,
                        "high": curve.high,
                        "worst": curve.worst,
                        "odd": curve.odd,
                    }
                    for curve in part.curves
                },
            }
            for part in parts
        ],
        "marks": marks,
        "attempts_left_out": left_out,
        "read": source.progress,
    }
    return json.dumps(answer, allow_nan=False)


def _told_of(name: str) -> Mapping[str, str]:
    field = FIELDS[name]
    return {"unit": field.unit, "normal": field.normal, "abnormal": field.abnormal}


def _fields(text: str | None) -> Sequence[str]:
    names = [name for name in (text or "").split(",") if name] or list(CURVES)
    for name in names:
        if name not in CURVES:
            raise PlotError(f"{name} has no history; there are {', '.join(CURVES)}")
    return list(dict.fromkeys(names))


def _step(asked: QueryParams, name: str) -> int | None:
    text = asked.get(name)
    if not text:
        return None
    try:
        return max(-_LATEST_STEP, min(_LATEST_STEP, round(float(text))))
    except (ValueError, OverflowError):
        raise PlotError(f"{name} is no step: {text[:40]!r}") from None


def _mark(mark: Mark) -> Mapping[str, Any]:
    told = {"rank": mark.rank, "host": mark.host, "step": mark.step}
    given = {name: value for name, value in told.items() if value is not None}
    return {"t": mark.t, "name": mark.name, "attempt": mark.attempt, **given}


def strips_json(source: HistorySource) -> str:
    """The strips of the newest attempt's ranks and of the GPUs.

    `cells` are bytes in base64, row by row: 0 where nothing was told, else from `low` (1) to `high` (255).
    """
    with source.looked_at() as history:
        attempt = history.strips_attempt
        of_ranks, of_gpus = [*strips(history)], [*gpu_strips(history)]
    answer = {
        "schema": SCHEMA,
        "attempt": attempt,
        "ranks": [*map(_strip, of_ranks)],
        "gpus": [*map(_strip, of_gpus)],
    }
    return json.dumps(answer, allow_nan=False)


def _strip(strip: Strip) -> Mapping[str, Any]:
    low, high = _ends(strip)
    span = (high - low) or 1.0
    scaled = np.clip((strip.cells - low) / span, 0.0, 1.0)
    levels = np.where(np.isnan(strip.cells), 0, 1 + np.nan_to_num(scaled) * _LEVELS).astype(np.uint8)
    known = FIELDS.get(strip.field)
    return {
        "field": strip.field,
        "unit": known.unit if known else "",
        "base": strip.base,
        "width": strip.width,
        "rows": len(strip.names),
        "columns": strip.cells.shape[1],
        "names": list(strip.names),
        "extreme": list(strip.extreme),
        "low_is_worse": strip.low_is_worse,
        "low": low,
        "high": high,
        "cells": base64.b64encode(levels.tobytes()).decode("ascii"),
    }


def _ends(strip: Strip) -> tuple[float, float]:
    """Between these the colours are spread.

    One cell far off must not make all others look alike, nor a thousandth of a second look like trouble: they
    are a tenth of the middle apart at least, and what is the same everywhere lies at the end that is no
    trouble.
    """
    told = strip.cells[~np.isnan(strip.cells)]
    low, middle, high = (float(it) for it in np.quantile(told, (0.01, 0.5, 0.99)))
    margin = abs(middle) * _NARROWEST / 2
    if high - low > 2 * margin:
        return low, high
    return (high - 2 * margin, high) if strip.low_is_worse else (low, low + 2 * margin)
