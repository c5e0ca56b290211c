"""Traces of the same steps are laid side by side, and of several takings the newest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from train_ledger.slow.trace.takings import newest_taking


def chosen(root: Path, *names: str) -> tuple[list[str], str]:
    """Files are written one after the other, the first one first."""
    files = []
    for number, name in enumerate(names):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
        os.utime(file, (1000 + number, 1000 + number))
        files.append(file)
    found = newest_taking(root, files)
    return [str(it.relative_to(root)) for it in found.files], found.remark


@pytest.mark.parametrize(
    "names",
    [
        ("rank_0.json.gz", "rank_1.json.gz"),
        ("rank0/iteration_10.json", "rank1/iteration_10.json"),
        ("host1_77.1760000000000.pt.trace.json", "host2_77.1760000000001.pt.trace.json"),
        ("taken-7-ab/rank_0.json.gz", "taken-9-cd/rank_1.json.gz"),
        ("left.json", "right.json"),
    ],
)
def test_all_of_them_where_each_is_of_another_rank(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert chosen(tmp_path, *names) == (sorted(names), "")


def test_the_newest_of_a_runs_takings_whatever_was_written_last(tmp_path: Path) -> None:
    newest = ["attempt_1/taken-30-ab/rank_0.json.gz", "attempt_1/taken-30-ab/rank_1.json.gz"]
    found, remark = chosen(tmp_path, *newest, "scheduled-20/rank_0.json.gz", "scheduled-10/rank_0.json.gz")
    assert found == newest
    assert remark == (
        "attempt_1/taken-30-ab is the newest of 3 takings in it; name another to see it: "
        "scheduled-10, scheduled-20"
    )


def test_iterations_are_counted_and_not_spelled(tmp_path: Path) -> None:
    newest = ["iteration_10/host1/rank0.json", "iteration_10/host2/rank1.json"]
    assert chosen(tmp_path, *newest, "iteration_9/host1/rank0.json")[0] == newest


def test_folders_whose_names_say_nothing_by_when_they_were_written(tmp_path: Path) -> None:
    assert chosen(tmp_path, "monday/rank0.json", "friday/rank0.json")[0] == ["friday/rank0.json"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("host_77.1760000000000.pt.trace.json", "host_77.1760000000009.pt.trace.json"),
        ("rank0/iteration_9.json", "rank0/iteration_10.json"),
        ("rank0_first.json", "rank0_again.json"),
    ],
)
def test_several_of_a_rank_in_one_folder(tmp_path: Path, old: str, new: str) -> None:
    found, remark = chosen(tmp_path, old, new)
    assert found == [new]
    assert "the newest of each is taken" in remark
