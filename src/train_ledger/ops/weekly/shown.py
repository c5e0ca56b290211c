"""How is the report over some days told?"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from train_ledger.answer import NextCommand
from train_ledger.ops.weekly.matters import Matter
from train_ledger.ops.weekly.weekly import RunWeek, Weekly
from train_ledger.render import duration, ranks_in_brief
from train_ledger.render.figures import Figures
from train_ledger.render.report import Report, Section, Tone, commands, pairs, points

__all__ = ["report_of_weekly"]

_MOST_COMMANDS = 8
_MOST_NAMED = 6
_SHOWN_DAYS = 14


def report_of_weekly(weekly: Weekly) -> Report:
    """A section a question: what it cost, what to see to by day, what woke people, when, and what to read."""
    sections = points("not read", (f"{it.file}: {it.why}" for it in weekly.unreadable))
    for run in weekly.runs:
        of = f" – {run.run}" if len(weekly.runs) + len(weekly.unreadable) > 1 else ""
        sections += pairs(f"time and money{of}", _time(run))
        sections += points(f"to see to by day{of}", map(_line, run.of_level("record")))
        sections += points(f"pages{of}", map(_line, run.of_level("page")))
        sections += _days(run, weekly, of)
        sections += points(f"not observed{of}", _not_observed(run))
    return Report(_verdict(weekly), _tone(weekly), (*sections, *commands(_next(weekly.runs))))


def _verdict(weekly: Weekly) -> str:
    records = [it for run in weekly.runs for it in run.of_level("record")]
    pages = sum(it.times for run in weekly.runs for it in run.of_level("page"))
    on_record = f"{_many(sum(it.times for it in records), 'alert')} on record"
    what = f"{on_record} in {_many(len(records), 'matter')}, {_many(pages, 'page')}"
    return f"{_of(weekly)}, {_day(weekly.since_t)} to {_day(weekly.until_t)}: {what}{_lost(weekly.runs)}"


def _of(weekly: Weekly) -> str:
    """Which runs the figures are of."""
    if unread := len(weekly.unreadable):
        return f"{len(weekly.runs)} of {len(weekly.runs) + unread} runs, {unread} could not be read"
    return weekly.runs[0].run if len(weekly.runs) == 1 else f"{len(weekly.runs)} runs"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _lost(runs: Sequence[RunWeek]) -> str:
    hours = [it.lost_gpu_hours for it in runs if it.lost_gpu_hours is not None]
    return f"; {sum(hours):,.1f} GPU-hours went into no step that counts" if hours else ""


def _tone(weekly: Weekly) -> Tone:
    if any(run.matters for run in weekly.runs):
        return "trouble"
    return "fine" if weekly.is_known and not weekly.unreadable else "unsure"


def _time(run: RunWeek) -> Iterable[tuple[str, str | None]]:
    accounts = run.accounts
    share = run.effective
    if share is None:
        yield "effective", "not known: nothing of this run lies in that time"
        return
    yield "effective", f"{share * 100:.1f} % of {duration(accounts.wall_s)}"
    lost = {name: seconds for name, seconds in accounts.seconds.items() if seconds and name != "productive"}
    longest = sorted(lost.items(), key=lambda it: -it[1])
    yield "the rest", ", ".join(f"{name} {duration(seconds)}" for name, seconds in longest)
    hours, cost = run.lost_gpu_hours, run.lost_cost
    yield "lost", None if hours is None else f"{hours:,.1f} GPU-hours"
    yield "cost of that", _money(cost, accounts.currency, known_hours=hours is not None)
    stops = accounts.interruptions
    if stops:
        causes = Counter(it.cause for it in stops).most_common(_MOST_NAMED)
        yield "interruptions", f"{len(stops)}: {', '.join(f'{cause} × {count}' for cause, count in causes)}"


def _money(cost: float | None, currency: str, *, known_hours: bool) -> str | None:
    if cost is None:
        return "no price known ([cost] in the configuration)" if known_hours else None
    return f"{cost:,.2f} {currency}"


def _line(it: Matter) -> str:
    where = f" on {it.host}" if it.host else ""
    on = [ranks_in_brief(it.ranks)] if it.ranks else []
    on += [f"GPU {_few(it.gpus)}"] if it.gpus else []
    on += [_few(it.devices)] if it.devices else []
    members = f" ({', '.join(on)})" if on else ""
    still = ", open still" if it.is_open else ""
    times = "once" if it.times == 1 else f"{it.times} times"
    when = f"first {_moment(it.first_t)}" + (f", last {_moment(it.last_t)}" if it.times > 1 else "")
    told = f"{it.name}{where}{members}: {times}, {duration(it.lasted_s)} in all{still}; {when}{_trend(it)}"
    return f"{told}; the last: {it.summary}"


def _trend(it: Matter) -> str:
    return {
        "": "",
        "new": "; none in as long a time before",
        "as many": f"; as many before ({it.before})",
    }.get(it.trend, f"; {it.trend} than before ({it.before})")


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _days(run: RunWeek, weekly: Weekly, of: str) -> list[Section]:
    """Firings by day, a row an alert: whether it grows is seen at a glance."""
    counts: dict[str, Counter[str]] = {}
    for it in run.matters:
        counts.setdefault(it.name, Counter()).update(it.days)
    if not counts:
        return []
    days = _days_between(weekly.since_t, weekly.until_t)[-_SHOWN_DAYS:]
    rows = tuple((name, *(str(own[day] or "·") for day in days)) for name, own in counts.items())
    heads = ("", *(day[5:] for day in days))
    return [Section(f"firings by day{of}", (Figures(heads, rows),))]


def _days_between(since_t: float, until_t: float) -> list[str]:
    first, last = int(since_t // 86_400), int(until_t // 86_400)
    return [_day(number * 86_400.0) for number in range(first, last + 1)]


def _not_observed(run: RunWeek) -> Iterable[str]:
    yield from run.not_read
    yield from run.accounts.not_observed
    if run.inhibited:
        yield f"{run.inhibited} firings that another alert explained are not counted"


def _next(runs: Sequence[RunWeek]) -> list[NextCommand]:
    """The runbook of what lasted longest."""
    longest = sorted(((it, run) for run in runs for it in run.matters), key=lambda pair: -pair[0].lasted_s)
    paths: dict[str, str] = {}
    for it, run in longest:
        paths.setdefault(it.name, shlex.quote(run.path))
    return [
        NextCommand(f"what to do about {name}", f"train-ledger runbook {name} --run {path}")
        for name, path in list(paths.items())[:_MOST_COMMANDS]
    ]


def _moment(t: float) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%m-%d %H:%M}"


def _day(t: float) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d}"
