"""What stands in the newest steps of a run directory, or in those before a given step or time?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from train_ledger.run_dir import RunDir
from train_ledger.slow.table.assembly import table_of_rows
from train_ledger.slow.table.cut import AfterStep, AfterTime
from train_ledger.slow.table.files import RankFiles
from train_ledger.slow.table.identities import first_identity, identities_of
from train_ledger.slow.table.layout import layout_of
from train_ledger.slow.table.rows import RankRows, joined, rows_of_lines
from train_ledger.slow.table.step_table import StepTable

__all__ = ["NEWEST_STEPS", "Until", "read_table"]

NEWEST_STEPS = 400
_MOST_LINES = 120_000
"""Of very many ranks fewer steps are read: a second's work."""

_FEWEST_STEPS = 60
_LINE_BYTES = 512
_AGE = re.compile(r"\.jsonl(?:\.(\d{1,9}))?\Z")


@dataclass(frozen=True, slots=True)
class Until:
    """The last step that is wanted, and the attempt that it is of."""

    attempt: int
    step: int


def read_table(
    run_dir: RunDir,
    steps: int = NEWEST_STEPS,
    *,
    at: float | None = None,
    until: Until | None = None,
    ranks: Collection[int] | None = None,
) -> StepTable:
    """The newest `steps` steps that the signal files tell.

    As known at `at`, unix seconds by the host of the lowest rank. `until` ends the table at an earlier step;
    `ranks` are read alone where they are given. At most as many lines are read as take about a second. The
    table has no row where there are no signal files. Raises RunDirError where run.json cannot be used; a file
    that cannot be read counts as damaged.
    """
    run = run_dir.read_run()
    paths = _paths(run_dir, ranks)
    most = min(steps, max(_FEWEST_STEPS, _MOST_LINES // max(1, len(paths))))
    told, damaged, read_bytes = _read_all(paths, most, _cut(at, until))
    identities = identities_of(run_dir)
    for rows in told:
        known = identities.get(rows.rank, {})
        if rows.identity and rows.identity.get("attempt", 0) >= known.get("attempt", 0):
            identities[rows.rank] = {**known, **rows.identity}
    table = table_of_rows(told, layout_of(run, identities), most)
    return replace(table, damaged=Counter(table.damaged) + damaged, read_bytes=read_bytes)


def _read_all(
    paths: Mapping[int, list[Path]], most: int, cut: AfterTime | AfterStep | None
) -> tuple[list[RankRows], Counter[str], int]:
    told: list[RankRows] = []
    damaged, read_bytes = Counter[str](), 0
    for rank, files in sorted(paths.items()):
        try:
            with RankFiles(files) as opened:
                rows = _newest(opened, rank, most, cut)
                read_bytes += opened.read_bytes
        except OSError:
            damaged["not_readable"] += 1
            continue
        told.append(rows)
        if isinstance(cut, AfterTime) and len(rows):
            # The others end where the first one did: their hosts' clocks may differ.
            cut = AfterStep(int(rows.attempt[-1]), int(rows.step[-1]))
    return told, damaged, read_bytes


def _paths(run_dir: RunDir, ranks: Collection[int] | None) -> dict[int, list[Path]]:
    """The files of each rank, the oldest first."""
    found: dict[int, list[Path]] = {}
    for rank, path in run_dir.signal_files():
        if ranks is None or rank in ranks:
            found.setdefault(rank, []).append(path)
    for files in found.values():
        files.sort(key=lambda path: -_age(path))
    return found


def _age(path: Path) -> int:
    match = _AGE.search(path.name)
    return int(match[1] or 0) if match else 0


def _cut(at: float | None, until: Until | None) -> AfterTime | AfterStep | None:
    if at is not None:
        return AfterTime(at)
    return None if until is None else AfterStep(until.attempt, until.step)


def _newest(files: RankFiles, rank: int, most: int, cut: AfterTime | AfterStep | None) -> RankRows:
    """The last `most` rows or a few more, read backwards."""
    end = files.whole_end() if cut is None else files.end_before(cut.is_beyond)
    wanted_bytes = (most + 8) * _LINE_BYTES
    rows: RankRows | None = None
    while rows is None or (end > 0 and len(rows) < most):
        start = files.line_start(max(0, end - wanted_bytes))
        if start >= end > 0:  # one line is longer than that
            wanted_bytes *= 2
            continue
        found = rows_of_lines(files.read(start, end), rank)
        found = found if cut is None else cut.kept(found)
        rows = found if rows is None else joined(found, rows)
        wanted_bytes = max(wanted_bytes // 4, (most - len(rows) + 8) * _LINE_BYTES) * (1 if len(found) else 4)
        end = start
    if end > 0:
        return rows if rows.identity else replace(rows, identity=first_identity(files, rank))
    return replace(rows, from_start=True)
