"""How are the ranks shown, so that a thousand are seen as fast as eight?"""

from __future__ import annotations

from math import ceil, isqrt

from train_ledger.dash.page.host import host_cell
from train_ledger.dash.page.markup import Safe, element, join, moment, table
from train_ledger.dash.page.rank_rows import RankRow, Totals, in_words, worst_first

__all__ = ["rank_list_part", "ranks_part"]

_RANK_ROWS, _LEAST_ROWS = 24, 8
"""Of ranks of which there is something to say, and of all."""
_UNTROUBLED = frozenset({"waiting", "standing", "ended", "fine"})
_LEAST_WIDE = 8


def ranks_part(rows: list[RankRow]) -> Safe:
    """How many are how, and where they sit; while a run goes well this does not change with the steps."""
    if not rows:
        return join((element("h2", "ranks"), element("p", "No rank has been heard of yet.", class_="dim")))
    summary = ", ".join(f"{count} {word}" for word, count in Totals.of(rows).counts.items())
    return join((element("h2", "ranks", element("span", f" {summary}", class_="dim")), _map(rows)))


def rank_list_part(rows: list[RankRow]) -> Safe:
    """The worst by name; of a large run those of which there is something to say."""
    ordered = worst_first(rows)
    troubled = sum(row.word not in _UNTROUBLED for row in ordered)
    shown = ordered[: max(_LEAST_ROWS, min(_RANK_ROWS, troubled))]
    if not shown:
        return join([])
    shown_ranks = {row.rank.rank for row in shown}
    rest = [row for row in rows if row.rank.rank not in shown_ranks]
    more = element("p", f"Not listed: {in_words(rest)} – {_alike(rest)}.", class_="dim") if rest else None
    headings = ("rank", "", "step", "phase", "last step", "last heard", "host", "GPU", "pid")
    return join((table(headings, [_rank(row) for row in shown], "ranks"), more))


def _alike(rows: list[RankRow]) -> str:
    counts = Totals.of(rows).counts
    steps = {row.rank.step for row in rows}
    at = f" at step {next(iter(steps))}" if len(steps) == 1 and None not in steps else ""
    return ", ".join(f"{count} {word}" for word, count in counts.items()) + at


def _rank(row: RankRow) -> Safe:
    rank = row.rank
    word = element("span", row.word, class_=f"chip {_css(row)}", title=row.detail or None)
    return element(
        "tr",
        element("td", rank.rank, class_="number"),
        element("td", word, element("span", f" {row.detail}", class_="dim") if row.detail else None),
        element("td", "–" if rank.step is None else rank.step, class_="number"),
        element("td", rank.phase or "–"),
        element("td", moment(rank.step_t)),
        element("td", moment(rank.heard_t)),
        host_cell(rank.host),
        element("td", "–" if rank.gpu is None else rank.gpu, class_="number"),
        element("td", "–" if rank.pid is None else rank.pid, class_="number"),
        class_=_css(row),
    )


def _css(row: RankRow) -> str:
    return row.word.replace(" ", "-")


def _map(rows: list[RankRow]) -> Safe | None:
    """One cell a rank: where in a large run the trouble sits."""
    if len(rows) < 2:
        return None
    wide = max(_LEAST_WIDE, min(64, 8 * ceil(isqrt(len(rows) * 4) / 8)))
    size = f"0 0 {10 * min(wide, max(_LEAST_WIDE, len(rows)))} {10 * ceil(len(rows) / wide)}"
    cells = (_cell(row, 10 * (number % wide), 10 * (number // wide)) for number, row in enumerate(rows))
    scale = "small" if wide <= 16 else "large"
    return element(
        "svg", *cells, class_=f"map {scale}", viewBox=size, role="img", aria_label="one cell a rank"
    )


def _cell(row: RankRow, x: int, y: int) -> Safe:
    said = element("title", f"rank {row.rank.rank}: {row.word}")
    return element("rect", said, class_=_css(row), x=x, y=y, width=8, height=8, rx=1.5)
