"""How does a run look in a terminal that shows it as it goes on?

The verdict or the state first, with the command to run next, then the figures of the run and its step clock,
the open alerts, and of the ranks those of which there is most to say, as many as there is room for.
Everything from a log is made harmless.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from train_ledger.dash.page.headline import headline, how_it_is_heard, next_command
from train_ledger.dash.page.rank_rows import RANK_WORDS, RankRow, Totals, rank_rows
from train_ledger.dash.page.view import PageView
from train_ledger.ledger import RankState, RunState
from train_ledger.render import duration, harmless
from train_ledger.watch.run_figures import StepClock, figures, gibibytes

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
_FEWEST_RANKS = 3
_TABLE_HEAD_ROWS = 2
_NARROW = 60
_LOW = 24
_LONGEST_LINE = 400


def screen(view: PageView, *, ranks: int = 8, foot: str = "", fits: bool = False) -> RenderableType:
    """Everything for one look; at most `ranks` of them are listed, and `foot` is the last line.

    Where it `fits` the terminal's height fewer ranks are listed, so that nothing else is cut off.
    """
    return _Screen(view, ranks, foot, fits)


class _Screen:
    def __init__(self, view: PageView, ranks: int, foot: str, fits: bool) -> None:
        self._view, self._ranks, self._foot, self._fits = view, ranks, foot, fits

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height, width = console.height if self._fits else None, options.max_width
        gap = [] if height is not None and height < _LOW else [Text("")]
        above = Group(*_first(self._view), *gap, *_run(self._view, width, height), *gap)
        foot = [Text(self._foot, style="dim", no_wrap=True)] if self._foot else []
        below = Group(*gap, *_not_observed(self._view), *foot)
        room = self._ranks
        if height is not None:
            taken = sum(len(console.render_lines(part, options, pad=False)) for part in (above, below))
            room = max(_FEWEST_RANKS, min(room, height - taken - _TABLE_HEAD_ROWS))
        yield above
        yield _rank_table(self._view, room, width)
        yield below


# -- what is wrong, and how the run goes


def _first(view: PageView) -> Iterator[Text]:
    first = headline(view)
    yield Text.assemble((_safe(view.state.run), "bold"), "  ", (_safe(first.text), _TONES[first.tone]))
    if view.state.unreadable is not None:
        yield Text(f"cannot be read any more: {_safe(view.state.unreadable)}", style="bold red")
    if (told := how_it_is_heard(view)) is not None:
        yield Text(_safe(told))
    if (command := next_command(view)) is not None:
        yield Text.assemble((f"next: {_safe(command.why)}", "dim"))
        yield Text.assemble("  ", (_safe(command.command), "cyan"), overflow="fold")


def _safe(text: object) -> str:
    return harmless(text, longest=_LONGEST_LINE)


def _run(view: PageView, width: int, height: int | None) -> Iterator[RenderableType]:
    yield figures(view.state, width if width < _NARROW else None)
    yield StepClock(view.state)
    most = _MOST_ALERTS if height is None else min(_MOST_ALERTS, height // 8)
    for number, line in enumerate(_alerts(view, most)):
        if height is not None and (number or height < _LOW):  # the first may take a second line
            line.no_wrap, line.overflow = True, "ellipsis"
        yield line


def _alerts(view: PageView, most: int) -> Iterator[Text]:
    shown = sorted(view.alerts, key=lambda it: (it.level != "page", it.inhibited, -it.fired_t))
    if not shown:
        yield Text("no alert holds", style="dim")
    for alert in shown[:most]:
        style = "bold red" if alert.level == "page" and not alert.inhibited else "yellow"
        told = _safe(alert.summary.removeprefix(f"{view.state.run}: "))
        held = " (inhibited)" if alert.inhibited else ""
        held += " (no longer so, not resolved yet)" if alert.gone_t is not None else ""
        yield Text.assemble((f"{alert.level:<6} {alert.name}", style), f"{held}  {told}")
    if len(shown) > most:
        yield Text(f"and {len(shown) - most} more", style="dim")


def _not_observed(view: PageView) -> Iterator[Text]:
    for line in view.not_observed:
        yield Text(f"not observed: {_safe(line)}", style="dim")


# -- its ranks

_BETWEEN = 2
_SHORTEST_WORD = 8
_FIELDS = (
    ("own work", "compute_s"),
    ("collectives", "comm_wait_s"),
    ("data", "data_wait_s"),
    ("GPU mem", "mem_reserved_peak"),
    ("host mem", "rss_bytes"),
)


def _rank_table(view: PageView, most: int, width: int) -> RenderableType:
    """The ranks with most to say; in a narrow terminal who, what, where and since when alone."""
    rows = rank_rows(view)
    if not rows:
        return Text("No rank has been heard of yet.", style="dim")
    shown = _most_to_say(rows)[:most]
    columns = [
        _column(heading, shown, view.state) for heading in (_OF_NARROW if width < _NARROW else _OF_ALL)
    ]
    fixed = len(columns)
    if width >= _NARROW:
        columns += [it for name, field in _FIELDS if (it := _field_column(name, field, shown)) is not None]
    while len(columns) > fixed and sum(it.least + _BETWEEN for it in columns) > width:
        columns.pop()
    figures_wide = sum(it.widest for it in columns if not it.is_text)
    table = Table(box=None, padding=(0, _BETWEEN, 0, 0))
    widths = _shared(columns, width - figures_wide - _BETWEEN * len(columns))
    for column, wide in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "left" if column.is_text else "right"
        table.add_column(column.heading, justify=justify, header_style="dim", width=wide, no_wrap=True)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    counts = Text(_counts(rows, len(shown)), style="dim", no_wrap=True, overflow="ellipsis")
    return Group(counts, table)


def _shared(columns: Sequence[_Column], room: int) -> Iterator[int]:
    """How wide each column is; where there is no room for all words, none gets more than its share."""
    texts = sorted(it.widest for it in columns if it.is_text)
    most = max(1, room // len(texts))
    if texts[0] < most:  # what the shorter ones do not need
        most = max(1, (room - texts[0]) // (len(texts) - 1))
    for column in columns:
        yield min(column.widest, most) if column.is_text else column.widest


@dataclass(frozen=True, slots=True)
class _Column:
    """Words may be cut where there is no room for them, figures never."""

    heading: str
    cells: tuple[Text, ...]
    is_text: bool = False

    @property
    def widest(self) -> int:
        return max(len(self.heading), *(it.cell_len for it in self.cells))

    @property
    def least(self) -> int:
        return min(self.widest, _SHORTEST_WORD) if self.is_text else self.widest


def _column(heading: str, rows: Sequence[RankRow], state: RunState) -> _Column:
    return _Column(heading, tuple(_CELLS[heading](row, state) for row in rows), heading in ("", "host"))


def _field_column(heading: str, field: str, rows: Sequence[RankRow]) -> _Column | None:
    """None where none of the ranks tells it."""
    if not any(field in row.rank.values for row in rows):
        return None
    return _Column(heading, tuple(Text(_value(row.rank, field)) for row in rows))


def _counts(rows: Sequence[RankRow], shown: int) -> str:
    counts = ", ".join(f"{count} {word}" for word, count in Totals.of(list(rows)).counts.items())
    some = f"; {shown} of {len(rows)} shown" if shown < len(rows) else ""
    return f"ranks: {counts}{some}"


def _most_to_say(rows: Sequence[RankRow]) -> list[RankRow]:
    """Those in trouble first; then those that work longest beyond their peers, which drag the others."""
    by_work = sorted(rows, key=lambda row: -_finite(row.rank.values.get("compute_s", 0.0)))
    return sorted(by_work, key=lambda row: RANK_WORDS.index(row.word))


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _word(row: RankRow, _: RunState) -> Text:
    word = row.word + (f" – {_safe(row.detail)}" if row.detail else "")
    return Text(word, style=_WORDS.get(row.word, "dim"), overflow="ellipsis", no_wrap=True)


def _since_its_step(row: RankRow, state: RunState) -> Text:
    t = row.rank.step_t
    return Text("–" if t is None else duration(max(0.0, round(state.t - t))))


_CELLS: Mapping[str, Callable[[RankRow, RunState], Text]] = {
    "rank": lambda row, _: Text(str(row.rank.rank)),
    "": _word,
    "host": lambda row, _: Text(_safe(row.rank.host or "–"), overflow="ellipsis", no_wrap=True),
    "GPU": lambda row, _: Text("–" if row.rank.gpu is None else str(row.rank.gpu)),
    "step": lambda row, _: Text("–" if row.rank.step is None else f"{row.rank.step:,}"),
    "last step": _since_its_step,
}
_OF_ALL = tuple(_CELLS)
_OF_NARROW = ("rank", "", "host", "last step")


def _value(rank: RankState, field: str) -> str:
    value = rank.values.get(field)
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.3g} s" if field.endswith("_s") else gibibytes(value)
