"""The kernels of an nsys export, summed by their names."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from train_ledger.slow.trace.nsys_export import NsysError, kernel_sums


def export(path: Path, kernels: list[tuple[int, int, int]], *, process: bool = True) -> Path:
    """Kernels as (start, end, id of the name); the names are gemm, 1, and nccl, 2."""
    connection = sqlite3.connect(path)
    columns = "start INT, end INT, demangledName INT, shortName INT" + (", globalPid INT" if process else "")
    connection.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({columns})")
    connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, "gemm"), (2, "ncclDevKernel'; DROP")])
    for start, end, name in kernels:
        values = "(?, ?, ?, ?, 77)" if process else "(?, ?, ?, ?)"
        statement = f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES {values}"  # noqa: S608
        connection.execute(statement, (start, end, name, name))
    connection.commit()
    connection.close()
    return path


def test_a_row_a_kernel(tmp_path: Path) -> None:
    found = kernel_sums(export(tmp_path / "r.sqlite", [(0, 10, 1), (20, 50, 1), (5, 105, 2), (9, 10, 3)]))
    assert [(it.name, it.count, it.total_ns) for it in found] == [
        ("ncclDevKernel'; DROP", 1, 100), ("gemm", 2, 40), ("kernel 3", 1, 1),
    ]  # fmt: skip
    assert (found[1].mean_ns, found[1].least_ns, found[1].most_ns, found[1].global_pid) == (20, 10, 30, 77)


def test_an_export_without_processes_and_nothing_is_written(tmp_path: Path) -> None:
    path = export(tmp_path / "r #1.sqlite", [(0, 10, 1)], process=False)
    path.chmod(0o400)
    before = path.read_bytes()
    assert kernel_sums(path)[0].global_pid is None
    assert path.read_bytes() == before
    assert [it.name for it in tmp_path.iterdir()] == [path.name]


def test_graphs_of_which_no_kernel_was_recorded_are_told(tmp_path: Path) -> None:
    path = export(tmp_path / "r.sqlite", [(0, 10, 1), (10, 12, 0)])
    connection = sqlite3.connect(path)
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = NULL WHERE start = 10")
    connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, graphId INT)")
    connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (20, 50, 1), (60, 90, 1)")
    connection.commit()
    found = kernel_sums(path)
    assert [(it.name[:12], it.count, it.total_ns) for it in found] == [
        ("a CUDA graph", 2, 60), ("gemm", 1, 10), ("a kernel wit", 1, 2),
    ]  # fmt: skip
    assert "--cuda-graph-trace=node" in found[0].name
    connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
    connection.commit()
    connection.close()
    assert len(kernel_sums(path)) == 1


def test_what_is_no_export(tmp_path: Path) -> None:
    (tmp_path / "report").write_bytes(b"NSYS")
    with pytest.raises(NsysError, match="no sqlite file; make one by: nsys export --type sqlite"):
        kernel_sums(tmp_path / "report")
    sqlite3.connect(tmp_path / "other.sqlite").execute("CREATE TABLE a (b)").connection.close()
    with pytest.raises(NsysError, match="no kernels"):
        kernel_sums(tmp_path / "other.sqlite")
    damaged = export(tmp_path / "damaged.sqlite", [(0, 10, 1)] * 50)
    damaged.write_bytes(damaged.read_bytes()[:5000])
    with pytest.raises(NsysError):
        kernel_sums(damaged)
    with pytest.raises(FileNotFoundError):
        kernel_sums(tmp_path / "none")


def test_a_view_that_never_ends_is_not_asked(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "r.sqlite")
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS start FROM c"
    connection.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {endless}")
    connection.commit()
    connection.close()
    with pytest.raises(NsysError, match="views where nsys has tables"):
        kernel_sums(tmp_path / "r.sqlite")


def test_names_of_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = export(tmp_path / "r.sqlite", [(0, 10, 1)])
    connection = sqlite3.connect(path)
    connection.execute("UPDATE StringIds SET value = CAST(x'ff41' AS TEXT)")
    connection.commit()
    connection.close()
    assert [it.name for it in kernel_sums(path)] == ["\ufffdA"]
