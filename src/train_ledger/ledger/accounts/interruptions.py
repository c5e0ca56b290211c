"""What do the interruptions of a run come to, by their causes?

Shares and times between are computed from the counts, whatever a table prints beside them: that of the
Llama 3 paper (arXiv 2407.21783, table 5) prints 30.1 % for 148 of 419, which are 35.3 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from train_ledger.ledger.accounts.records import Interruption

__all__ = ["Row", "Table", "by_cause", "table_of"]


@dataclass(frozen=True, slots=True)
class Row:
    """So many interruptions by one cause, and their share of all, 0 to 1."""

    cause: str
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class Table:
    """Rows from the most frequent cause on; `count` is their sum, `mtbi_s` the time that lies between two.

    `gpu_hours_between` is what the run computes in that time; both are None where it is not known.
    """

    rows: tuple[Row, ...]
    count: int
    mtbi_s: float | None = None
    gpu_hours_between: float | None = None

    def share(self, causes: Collection[str]) -> float:
        """The share of several causes together.

        >>> table_of({"gpu": 3, "software": 1}).share(["gpu"])
        0.75
        """
        return sum(row.count for row in self.rows if row.cause in causes) / self.count if self.count else 0.0


def table_of(
    counts: Mapping[str, int], *, elapsed_s: float | None = None, world_size: int | None = None
) -> Table:
    """The table of these counts, of a run that was interrupted so often in `elapsed_s`.

    >>> table = table_of({"faulty GPU": 148, "all others": 271}, elapsed_s=54 * 86_400, world_size=16_384)
    >>> [f"{row.cause} {row.share:.1%}" for row in table.rows]
    ['all others 64.7%', 'faulty GPU 35.3%']
    >>> round(table.mtbi_s / 3600, 2), round(table.gpu_hours_between)
    (3.09, 50677)
    """
    if any(count < 0 for count in counts.values()):
        raise ValueError("a count of interruptions cannot be negative")
    total = sum(counts.values())
    rows = [Row(cause, count, count / total) for cause, count in counts.items() if count]
    rows.sort(key=lambda row: (-row.count, row.cause))
    mtbi_s = elapsed_s / total if elapsed_s is not None and total else None
    hours = mtbi_s * world_size / 3600 if mtbi_s is not None and world_size is not None else None
    return Table(tuple(rows), total, mtbi_s, hours)


def by_cause(interruptions: Iterable[Interruption]) -> Mapping[str, int]:
    """How often each cause interrupted a run."""
    return dict(Counter(it.cause for it in interruptions).most_common())
