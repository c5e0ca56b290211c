"""Which kernels took how long, by an nsys report's sqlite export?

To check the buckets of a trace by. The file is opened for reading alone, and only counted and summed.
"""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from train_ledger.headway import tell

__all__ = ["KernelSum", "NsysError", "kernel_sums"]

_TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_GRAPH = "a CUDA graph: its kernels were not recorded (nsys profile --cuda-graph-trace=node)"
_TIMES = {"start", "end"}
_NAMES = ("demangledName", "shortName", "mangledName")
_MOST = 100_000
_QUICK_S = 2.0
_TOLD_EVERY = 1_000_000
"""Instructions of sqlite's machine: some hundredths of a second."""


class NsysError(Exception):
    """The file is no sqlite export of nsys with kernels in it; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class KernelSum:
    """All kernels of one name, in nanoseconds; `global_pid` None where the export does not tell processes."""

    name: str
    count: int
    total_ns: int
    mean_ns: float
    least_ns: int
    most_ns: int
    global_pid: int | None = None


def kernel_sums(path: Path) -> list[KernelSum]:
    """A row a process and kernel, the longest in all first.

    A graph that nsys recorded as a whole, as it does unless it is told otherwise, is one kind of kernel.
    Raises NsysError for what is no such file, OSError where it cannot be read.
    """
    with path.open("rb") as file:
        if file.read(16) != b"SQLite format 3\0":
            raise NsysError(f"{path}: no sqlite file; make one by: nsys export --type sqlite {path.name}")
    uri = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=_QUICK_S)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        began_s = time.monotonic()
        connection.set_progress_handler(
            lambda: tell("summing kernels", time.monotonic() - began_s, None, "seconds"), _TOLD_EVERY
        )
        try:
            return _sums(connection, path)
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise NsysError(f"{path}: cannot be read as an export of nsys: {error}") from error


def _want_tables(connection: sqlite3.Connection, path: Path) -> None:
    """A view of the same name would be a statement of the file's own, which may never end."""
    query = "SELECT name FROM sqlite_master WHERE name IN (?, ?, 'StringIds') AND type != 'table'"
    if connection.execute(query, (_TABLE, _GRAPHS)).fetchone():
        raise NsysError(f"{path}: has views where nsys has tables; it is no export of nsys")


def _sums(connection: sqlite3.Connection, path: Path) -> list[KernelSum]:
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA query_only=ON")
    _want_tables(connection, path)
    columns, of_graphs = (_columns(connection, table) for table in (_TABLE, _GRAPHS))
    found = []
    if of_graphs >= _TIMES:
        found += _summed(connection, f"'{_GRAPH}'", _GRAPHS, of_graphs)
    if columns >= _TIMES:
        name = next((it for it in _NAMES if it in columns), None)
        if name is None:
            raise NsysError(f"{path}: its kernels have no names that are known: {', '.join(sorted(columns))}")
        told = f"COALESCE(s.value, 'kernel ' || k.{name}, 'a kernel without a name')"
        joined = f"{_TABLE} AS k LEFT JOIN StringIds AS s ON s.id = k.{name}"
        found += _summed(connection, told, joined, columns)
    elif not found:
        raise NsysError(f"{path}: has no kernels in it; record with -t cuda, and export the whole report")
    return sorted(found, key=lambda it: -it.total_ns)


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def _summed(connection: sqlite3.Connection, name: str, table: str, columns: set[str]) -> list[KernelSum]:
    """A row a process and `name`; nothing of the file's own text becomes part of the statement."""
    process = "globalPid" if "globalPid" in columns else "NULL"
    query = (
        f"SELECT {name}, {process}, COUNT(*), SUM(end - start), "  # noqa: S608
        f"AVG(end - start), MIN(end - start), MAX(end - start) FROM {table} "
        f"WHERE end >= start GROUP BY 1, 2 ORDER BY 4 DESC LIMIT {_MOST}"
    )
    return [
        KernelSum(str(row[0]), row[2], row[3], row[4], row[5], row[6], row[1])
        for row in connection.execute(query)
    ]
