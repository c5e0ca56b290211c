"""How does a run look in a terminal that shows it as it goes on?

The verdict or the state first, then the step clock and the figures of the run, then the ranks of which there
is most to say, and the open alerts. Everything from a log is made harmless.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from train_ledger.dash.page.headline import headline
from train_ledger.dash.page.rank_rows import RANK_WORDS, RankRow, Totals, rank_rows
from train_ledger.dash.page.view import PageView
from train_ledger.ledger import RankState, RunState
from train_ledger.render import duration, harmless

__all__ = ["screen"]

_TONES = {"trouble": "bold red", "unsure": "bold yellow", "fine": "bold green", "ended": "bold"}
_WORDS = {
    "culprit": "bold red",
    "gone": "red",
    "raised": "red",
    "not finite": "red",
    "behind": "yellow",
    "silent": "yellow",
}
_MOST_ALERTS = 8
_BAR = 40


def screen(view: PageView, *, ranks: int = 8) -> RenderableType:
    """Everything for one look; `ranks` is how many of them are listed."""
    first = headline(view)
    rows = rank_rows(view)
    return Group(
        Text.assemble((harmless(view.state.run), "bold"), "  ", (harmless(first.text), _TONES[first.tone])),
        Text(""),
        _figures(view.state),
        _clock(view.state),
        Text(""),
        _ranks(rows, view.state, ranks),
        Text(""),
        *_alerts(view),
        *(Text(f"not observed: {harmless(line)}", style="dim") for line in view.not_observed),
    )


# -- the run


def _figures(state: RunState) -> Columns:
    told = (Text.assemble((f"{name}\n", "dim"), (value, "bold")) for name, value in _run_figures(state))
    return Columns(told, padding=(0, 2))


def _run_figures(state: RunState) -> Iterator[tuple[str, str]]:
    values = [rank.values for rank in state.ranks.values()]
    yield "state", state.state
    yield "step", "–" if state.step is None else f"{state.step:,}"
    yield "attempt", str(state.attempt)
    yield "a step takes", _or_none(state.p50_step_time_s, duration)
    yield "tokens/s", _or_none(_total(values, "tps"), lambda it: f"{it:,.0f}")
    yield "MFU", _or_none(_middle(values, "mfu"), lambda it: f"{it:.1f} %")
    yield "loss", _or_none(_middle(values, "loss"), lambda it: f"{it:.4g}")
    yield "GPU memory", _or_none(_largest(values, "mem_reserved_peak"), _gibibytes)
    ranks = f"{len(state.ranks)}" + (f" of {state.world_size}" if state.world_size else "")
    yield "ranks", ranks
    saved = state.checkpoints.saved_t
    yield "saved", "–" if not saved else f"{duration(max(0.0, state.t - saved[-1]))} ago"


def _clock(state: RunState) -> Text:
    """How much of the limit has passed without a step."""
    if state.finished or state.stall_threshold_s <= 0:
        return Text("")
    share = min(1.0, state.stalled_for_s / state.stall_threshold_s)
    filled = round(share * _BAR)
    style = "red" if share >= 1 else "yellow" if share > 0.5 else "green"
    limit = f"limit {duration(state.stall_threshold_s)}" + (f" in {state.phase}" if state.phase else "")
    since = f"  {duration(state.stalled_for_s)} since the last step, {limit}"
    return Text.assemble(("━" * filled, style), ("━" * (_BAR - filled), "dim"), since)


# -- its ranks

_COLUMNS = (
    ("own work", "compute_s"),
    ("in collectives", "comm_wait_s"),
    ("for data", "data_wait_s"),
    ("GPU memory", "mem_reserved_peak"),
    ("host memory", "rss_bytes"),
)


def _ranks(rows: Sequence[RankRow], state: RunState, most: int) -> RenderableType:
    if not rows:
        return Text("No rank has been heard of yet.", style="dim")
    counts = ", ".join(f"{count} {word}" for word, count in Totals.of(list(rows)).counts.items())
    shown = _most_to_say(rows)[:most]
    columns = [column for column in _COLUMNS if any(column[1] in row.rank.values for row in rows)]
    table = Table(box=None, padding=(0, 2, 0, 0), title=f"ranks: {counts}", title_justify="left")
    table.title_style = "dim"
    for heading in ("rank", "", "host", "GPU", "step", "last step", *(name for name, _ in columns)):
        table.add_column(heading, justify="left" if heading in ("", "host") else "right", header_style="dim")
    for row in shown:
        table.add_row(*_cells(row, state, [field for _, field in columns]))
    return table


def _most_to_say(rows: Sequence[RankRow]) -> list[RankRow]:
    """Those in trouble first; then those that work longest beyond their peers, which drag the others."""
    by_work = sorted(rows, key=lambda row: -_finite(row.rank.values.get("compute_s", 0.0)))
    return worst_first_of(by_work)


def worst_first_of(rows: list[RankRow]) -> list[RankRow]:
    """By the word, and among equal words in the order in which they come."""
    return sorted(rows, key=lambda row: RANK_WORDS.index(row.word))


def _cells(row: RankRow, state: RunState, fields: Sequence[str]) -> Iterator[Text]:
    rank = row.rank
    yield Text(str(rank.rank))
    word = row.word + (f" – {harmless(row.detail)}" if row.detail else "")
    yield Text(word, style=_WORDS.get(row.word, "dim"), overflow="ellipsis", no_wrap=True)
    yield Text(harmless(rank.host) if rank.host else "–", overflow="ellipsis", no_wrap=True)
    yield Text("–" if rank.gpu is None else str(rank.gpu))
    yield Text("–" if rank.step is None else f"{rank.step:,}")
    yield Text("–" if rank.step_t is None else duration(max(0.0, state.t - rank.step_t)))
    for field in fields:
        yield Text(_value(rank, field))


def _value(rank: RankState, field: str) -> str:
    value = rank.values.get(field)
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.3g} s" if field.endswith("_s") else _gibibytes(value)


# -- its alerts


def _alerts(view: PageView) -> Iterator[Text]:
    shown = sorted(view.alerts, key=lambda it: (it.level != "page", it.inhibited, -it.fired_t))
    if not shown:
        yield Text("no alert holds", style="dim")
    for alert in shown[:_MOST_ALERTS]:
        style = "bold red" if alert.level == "page" and not alert.inhibited else "yellow"
        told = harmless(alert.summary.removeprefix(f"{view.state.run}: "))
        held = " (inhibited)" if alert.inhibited else ""
        yield Text.assemble((f"{alert.level:<6} {alert.name}", style), f"{held}  {told}")
    if len(shown) > _MOST_ALERTS:
        yield Text(f"and {len(shown) - _MOST_ALERTS} more", style="dim")


# -- figures

Values = Sequence[Mapping[str, float]]


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _told(values: Values, field: str) -> list[float]:
    return [it[field] for it in values if field in it and math.isfinite(it[field])]


def _total(values: Values, field: str) -> float | None:
    told = _told(values, field)
    return sum(told) if told else None


def _middle(values: Values, field: str) -> float | None:
    told = _told(values, field)
    return median(told) if told else None


def _largest(values: Values, field: str) -> float | None:
    return max(_told(values, field), default=None)


def _or_none(value: float | None, said: Callable[[float], str]) -> str:
    return "–" if value is None else said(value)


def _gibibytes(value: float) -> str:
    return f"{value / 2**30:.1f} GiB"
