"""How are the accounts of a run shown?

They come in the shape of their JSON answer: the table first, then how it went on in time, what stopped the
run and how it came back, and what nobody told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from train_ledger.render.bars import Bar, Bars
from train_ledger.render.figures import Figures
from train_ledger.render.report import Report, Section, Tone, pairs, points
from train_ledger.render.strip import Strip, sliced
from train_ledger.render.words import duration, moment

__all__ = ["CATEGORY_LETTERS", "report_of_accounts"]

CATEGORY_LETTERS = {
    "productive": "P",
    "rework": "R",
    "checkpoint": "C",
    "evaluation": "E",
    "start_up": "U",
    "stalled": "S",
    "down": "D",
    "unknown": "?",
}
"""The categories in the order in which they are drawn, each with the letter in its bar."""

_MEANS = {
    "productive": "steps that count",
    "rework": "steps that were done once more, or lost",
    "checkpoint": "training stood for a save",
    "evaluation": "evaluating",
    "start_up": "from a start to its first step, and warming up",
    "stalled": "no step, though processes were there",
    "down": "no process was there",
    "unknown": "nothing tells",
}
_MOST_RECOVERIES = 12

Answer = Mapping[str, Any]


def report_of_accounts(answer: Answer, *, tone: Tone) -> Report:
    """The report on accounts as their JSON answer has them."""
    wall_s = answer["wall_s"]
    if not wall_s:
        return Report("cannot tell: nothing was heard of the run", "unsure", tuple(_missing(answer)))
    productive_s = answer["seconds"]["productive"]
    verdict = f"productive {_percent(productive_s / wall_s)} of {_long(wall_s)}"
    sections = [
        Section("", (_table(answer), _bar(answer), _strip(answer))),
        *pairs("", _figures(answer)),
        *_stops(answer),
        *_missing(answer),
    ]
    return Report(verdict, tone, tuple(sections))


def _table(answer: Answer) -> Figures:
    hours, wall_s = answer.get("gpu_hours"), answer["wall_s"]
    rows = [
        (category, _long(seconds), _percent(seconds / wall_s), *_of_gpus(hours, category), means)
        for category, seconds in answer["seconds"].items()
        for means in (_MEANS.get(category, ""),)
    ]
    total = (f"{sum(hours.values()):,.1f}",) if hours else ()
    rows.append(("wall", _long(wall_s), "100.0 %", *total, ""))
    heads = ("", "time", "share", *(("GPU-hours",) if hours else ()), "")
    return Figures(heads, tuple(rows), left=frozenset((0, len(heads) - 1)))


def _of_gpus(hours: Mapping[str, float] | None, category: str) -> tuple[str, ...]:
    return (f"{hours[category]:,.1f}",) if hours else ()


def _bar(answer: Answer) -> Bars:
    """All of it in one bar, for a page; a terminal has the strip."""
    seconds = [answer["seconds"].get(category, 0.0) for category in CATEGORY_LETTERS]
    whole = Bar("all of it", tuple(seconds), _long(answer["wall_s"]))
    hours = answer.get("gpu_hours")
    bars = [whole]
    if hours:
        of_gpus = tuple(
            hours.get(category, 0.0) * answer["wall_s"] / sum(hours.values()) for category in CATEGORY_LETTERS
        )
        bars = [
            Bar("time", whole.parts, whole.told),
            Bar("GPU-hours", of_gpus, f"{sum(hours.values()):,.1f} h"),
        ]
    return Bars(
        "where it went, each category by its share",
        tuple(CATEGORY_LETTERS),
        "".join(CATEGORY_LETTERS.values()),
        tuple(bars),
    )


def _strip(answer: Answer) -> Strip:
    kinds = tuple(CATEGORY_LETTERS)
    spans = [(kinds.index(it["category"]), it["since_t"], it["until_t"]) for it in answer["spans"]]
    return Strip(
        sliced(spans),
        kinds,
        "".join(CATEGORY_LETTERS.values()),
        moment(answer["since_t"]),
        moment(answer["until_t"]),
    )


def _figures(answer: Answer) -> Iterable[tuple[str, str | None]]:
    yield "effective", ", ".join(_effective(answer["effective"])) or None
    yield "steps", f"{answer['steps']:,} that count" + _each(answer["step_time_s"])
    yield (
        "data",
        ", ".join(
            f"{per_s:,.0f} {name.removeprefix('consumed_')} a second"
            for name, per_s in answer["consumed_per_s"].items()
        )
        or None,
    )
    yield "MFU", None if answer["mfu"] is None else f"{answer['mfu']:.1f} %, mean over the steps that count"
    yield "cost", _cost(answer)
    yield "saves", _saves(answer["checkpointing"])
    yield "interruptions", _interrupted(answer)


def _effective(windows: Mapping[str, float | None]) -> Iterator[str]:
    names = {"1h": "last hour", "24h": "last 24 h", "run": "whole run"}
    for window, share in windows.items():
        if share is not None:
            yield f"{_percent(share)} ({names.get(window, window)})"


def _each(step_time_s: float | None) -> str:
    return "" if step_time_s is None else f", {step_time_s:.3g} s each"


def _cost(answer: Answer) -> str | None:
    if answer["cost"] is None:
        return None
    hours = answer["gpu_hours"]
    wasted = (sum(hours.values()) - hours["productive"]) * answer["price_per_gpu_hour"]
    return f"{answer['cost']:,.0f} {answer['currency']}, {wasted:,.0f} of it not on steps that count"


def _saves(saving: Mapping[str, Any]) -> str | None:
    if not saving["saves"] and not saving["failed"]:
        return None
    told = [f"{saving['saves']} done"]
    told += [f"{saving['failed']} failed"] if saving["failed"] else []
    told += [f"every {_long(saving['interval_s'])}"] if saving["interval_s"] else []
    told += [f"each stops it for {duration(saving['blocking_s'])}"] if saving["blocking_s"] else []
    return ", ".join(told)


def _interrupted(answer: Answer) -> str:
    count = len(answer["interruptions"])
    between = "" if answer["mtbi_s"] is None else f", {_long(answer['mtbi_s'])} of use between them"
    causes = ", ".join(f"{it['count']} × {it['cause']}" for it in answer["causes"])
    return f"{count}{between}" + (f": {causes}" if causes else "")


def _stops(answer: Answer) -> list[Section]:
    recoveries: Sequence[Answer] = answer["recoveries"]
    shown = [_recovery(it) for it in recoveries[-_MOST_RECOVERIES:]]
    left = len(recoveries) - len(shown)
    earlier = [f"{left} earlier ones; --json lists all"] if left > 0 else []
    return points("recoveries", [*earlier, *shown])


def _recovery(it: Answer) -> str:
    stop = it["interruption"]
    parts = [f"{name} {duration(s)}" for name, s in it["parts_s"].items() if s is not None]
    untold = [name for name, s in it["parts_s"].items() if s is None]
    split = ", ".join(parts) + (f"; not told: {', '.join(untold)}" if untold else "")
    over = "not over" if it["over_t"] is None else f"over after {_long(it['over_t'] - it['began_t'])}"
    redone = f", {it['redone_steps']} steps done once more" if it["redone_steps"] else ""
    where = "before the first step" if stop["step"] is None else f"at step {stop['step']}"
    return (
        f"{moment(stop['t'])} {where}, attempt {stop['attempt']}: {stop['cause']}; {over}{redone} ({split})"
    )


def _missing(answer: Answer) -> list[Section]:
    return points("not observed", answer["not_observed"])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _long(seconds: float) -> str:
    """Days where it is long: accounts are of weeks, too."""
    days, rest_s = divmod(seconds, 86_400)
    if days < 2:
        return duration(seconds)
    return f"{days:.0f} d {rest_s / 3600:.0f} h"
