"""The entries of a rank, one by one."""

from __future__ import annotations

import pickle
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hang.recorder import Job
from train_ledger.hang.dumps.entries import entries_of
from train_ledger.hang.dumps.listing import Wanted, list_entries


def _job() -> Job:
    job = Job(3)
    job.group("tp", [0, 1], "mesh_tp")
    for _ in range(3):
        job.issue(range(3), done=True)
        job.issue([0, 1], "all_gather", group="tp", done=True)
    job.issue([0, 2], frames=[{"name": "late", "filename": "/job/train.py", "line": 9}])
    return job


def test_the_entries_of_chosen_ranks_with_each_stack_once(tmp_path: Path) -> None:
    found = entries_of([_job().write(tmp_path)], ranks={0, 2})
    assert [(it.rank, it.total, len(it.entries)) for it in found.listings] == [(0, 7, 7), (2, 4, 4)]
    assert found.ranks == (0, 1, 2)
    assert len(found.stacks) == 2
    assert found.stacks[1] == ("/job/train.py:9 late",)
    first, *_, last = found.listings[1].entries
    assert (first.op.name, first.op.seq, first.op.done, first.stack) == ("all_reduce", 1, True, 0)
    assert (last.op.record, last.op.seq, last.op.state, last.stack) == (3, 4, "scheduled", 1)
    assert (last.group, last.desc, last.thread, last.timeout_ms) == ("0", "default_pg", "python3", 600_000)


@pytest.mark.parametrize("name", ["tp", "mesh_tp"])
def test_groups_are_chosen_by_name_or_description(tmp_path: Path, name: str) -> None:
    (listing, _, other) = entries_of([_job().write(tmp_path)], groups=[name], last=2).listings
    assert [entry.op.seq for entry in listing.entries] == [2, 3], "the last two"
    assert (listing.matching, listing.total) == (3, 7)
    assert other.entries == ()


def test_of_very_many_ranks_each_has_fewer_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train_ledger.hang.dumps.entries._MOST_TOGETHER", 9)
    found = entries_of([_job().write(tmp_path)])
    assert [(len(it.entries), it.matching) for it in found.listings] == [(3, 7), (3, 6), (3, 4)]


def test_dumps_in_a_tar_are_listed_by_its_name_and_theirs(tmp_path: Path) -> None:
    folder = _job().write(tmp_path / "dumps")
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as tar:
        tar.add(folder, "dumps")
    found = entries_of([tmp_path / "all.tar.gz"], ranks=[2])
    assert [(it.file, len(it.entries)) for it in found.listings] == [
        (f"{tmp_path}/all.tar.gz: dumps/rank_2", 4)
    ]


def test_json_dumps_are_listed_too(tmp_path: Path) -> None:
    found = entries_of([_job().write(tmp_path, name="rank_{rank}.json", as_json=True)], ranks=[1])
    assert [entry.op.name for entry in found.listings[0].entries] == ["all_reduce", "all_gather"] * 3
    assert found.stacks == ()


def test_hostile_and_damaged_files_are_listed_not_read(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "PICKLE_WAS_RUN",))

    folder = _job().write(tmp_path / "dumps")
    (folder / "rank_1").write_bytes(pickle.dumps(Hostile(), protocol=2))
    whole = (folder / "rank_2").read_bytes()
    (folder / "rank_2").write_bytes(whole[: len(whole) // 2])
    (folder / "notes").write_text("mine")
    found = entries_of([folder])
    assert found.listings[0].rank == 0
    told = {Path(it.file).name: it.why for it in found.unreadable}
    assert set(told) == {"rank_1", "rank_2", "notes"}
    assert not (tmp_path / "PICKLE_WAS_RUN").exists()


def test_of_two_dumps_of_a_rank_the_newer_is_listed(tmp_path: Path) -> None:
    old, new = Job(1), Job(1)
    old.issue([0], "broadcast", done=True)
    new.issue([0], done=True)
    new.issue([0])
    found = entries_of([old.write(tmp_path / "old"), new.write(tmp_path / "new")])
    assert [entry.op.seq for entry in found.listings[0].entries] == [1, 2]
    assert [(Path(it.file).parent.name, it.why) for it in found.unreadable] == [
        ("old", "an older dump of rank 0, left out")
    ]


def test_an_entry_that_is_not_understood_is_shown_as_far_as_it_is() -> None:
    entry = {**_job().content(0)["entries"][0], "collective_seq_id": "many", "state": 7, "frames": "none"}
    listing = list_entries({"entries": [entry, 5]}, Wanted(), file="f", rank=0, host=None)
    assert listing is not None
    assert [(it.op.name, it.is_understood, it.stack) for it in listing.entries] == [
        ("all_reduce", False, None)
    ]
    assert listing.cut == "1 of 2 entries are none"


_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(sorted(_job().content(0)["entries"][0])), _plain)
def test_no_value_of_a_field_makes_it_raise(field: str, value: Any) -> None:
    content = _job().content(0)
    content["entries"][0] = {**content["entries"][0], field: value}
    listing = list_entries(content, Wanted(("0",), 5), file="f", rank=0, host=None)
    assert listing is not None
    assert listing.total == 7


@given(_plain)
def test_whatever_stands_in_the_file_is_listed_or_no_dump(content: Any) -> None:
    list_entries(content, Wanted(), file="f", rank=0, host=None)
    list_entries({"entries": content}, Wanted(), file="f", rank=0, host=None)
