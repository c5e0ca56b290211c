"""A snapshot of the allocator is summed up, and nothing that it asks to call is called."""

from __future__ import annotations

import os
import pickle
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from train_ledger.slow.trace import memory_snapshot
from train_ledger.slow.trace.memory_snapshot import SnapshotError, memory_summary

MIB = 1 << 20


def block(size_mib: int, state: str, line: int = 0, asked_mib: int | None = None) -> dict[str, Any]:
    frames = [{"filename": "ATen/core.cpp", "line": 1, "name": "at::empty"}]
    frames += [{"filename": "train.py", "line": line, "name": "forward"}] if line else []
    return {
        "size": size_mib * MIB, "requested_size": (asked_mib or size_mib) * MIB, "state": state,
        "address": 0, "frames": frames,
    }  # fmt: skip


def segment(*blocks: dict[str, Any], kind: str = "large", expandable: bool = False) -> dict[str, Any]:
    total = sum(it["size"] for it in blocks)
    return {
        "device": 0, "address": 0, "total_size": total, "segment_type": kind, "is_expandable": expandable,
        "blocks": list(blocks),
    }  # fmt: skip


def written(path: Path, content: object) -> Path:
    path.write_bytes(pickle.dumps(content))
    return path


def test_what_is_reserved_allocated_and_lies_in_gaps(tmp_path: Path) -> None:
    pieces = [block(10, "active_allocated", 8, asked_mib=9), block(6, "inactive")]
    pieces.append(block(4, "active_pending_free"))
    twins = [block(2, "active_allocated", 9)] * 2
    segments = [segment(*pieces), segment(block(20, "inactive"))]
    segments.append(segment(*twins, kind="small", expandable=True))
    actions = ["alloc", "segment_free", "segment_free", "segment_alloc", "segment_free", "oom"]
    traces = [[], [{"action": action, "size": 1} for action in actions]]
    found = memory_summary(written(tmp_path / "s.pickle", {"segments": segments, "device_traces": traces}))
    assert (found.segments, found.reserved_bytes, found.allocated_bytes) == (3, 44 * MIB, 14 * MIB)
    assert (found.requested_bytes, found.active_awaiting_free_bytes) == (13 * MIB, 4 * MIB)
    assert (found.inactive_bytes, found.inactive_split_bytes) == (26 * MIB, 6 * MIB)
    assert found.largest_free_bytes == 20 * MIB
    assert found.fragmentation == pytest.approx(6 / 44)
    assert found.by_kind == {"large": (2, 40 * MIB), "small expandable": (1, 4 * MIB)}
    assert [(it.count, it.total_bytes) for it in found.largest] == [(1, 10 * MIB), (1, 4 * MIB), (2, 4 * MIB)]
    assert found.largest[0].frames == ("train.py:8 forward",)
    assert (found.releases, found.out_of_memory) == (2, 1)


def test_without_a_history_nothing_is_said_of_it(tmp_path: Path) -> None:
    bare = {"segments": [segment({"size": MIB, "state": "active_allocated"})], "device_traces": [[]]}
    found = memory_summary(written(tmp_path / "s.pickle", bare))
    assert found.releases is None
    assert not found.has_frames


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch evil",)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (pickle.dumps({"segments": [Evil()]}), "asks to call posix.system"),
        (pickle.dumps({"segments": 5}), "no list of segments"),
        (pickle.dumps([1, 2])[:-3], "damaged"),
        (b"", "damaged"),
        (b"{}", "damaged"),
    ],
)
def test_what_is_no_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.pickle").write_bytes(content)
    with pytest.raises(SnapshotError, match=why):
        memory_summary(tmp_path / "s.pickle")
    assert not (tmp_path / "evil").exists()


def test_a_few_bytes_cannot_ask_for_gigabytes(tmp_path: Path) -> None:
    far = (1 << 30).to_bytes(4, "little")
    (tmp_path / "s.pickle").write_bytes(b"\x80\x04]r" + far + b".")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(SnapshotError, match="damaged"):
        memory_summary(tmp_path / "s.pickle")
    assert resource.getrlimit(resource.RLIMIT_AS) == limits


def test_lists_within_lists_do_not_fill_the_memory(tmp_path: Path) -> None:
    deep: list[Any] = ["x"]
    for _ in range(60):
        deep = [deep, deep]
    frame = {"filename": deep, "line": 10**5000, "name": deep}
    odd = {"size": 10**400, "state": deep, "frames": [frame]}
    segments = [{"segment_type": deep, "total_size": 10**400, "blocks": [odd]}]
    found = memory_summary(
        written(tmp_path / "s.pickle", {"segments": segments, "device_traces": [[{"action": deep}]]})
    )
    assert found.largest[0].frames == ("?:? ?",)
    assert found.reserved_bytes == 0


def test_snapshots_of_odd_values(tmp_path: Path) -> None:
    odd = {
        "segments": [None, {}, {"blocks": [3, {"size": -1, "frames": 7}], "total_size": "x"}],
        "device_traces": 3,
    }
    assert memory_summary(written(tmp_path / "s.pickle", odd)).reserved_bytes == 0


def test_of_a_file_that_is_too_large_the_segments_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = [segment(block(10, "active_allocated", 8), block(6, "inactive")) for _ in range(40)]
    traces = [[{"action": "alloc", "size": number} for number in range(5000)]]
    path = written(tmp_path / "s.pickle", {"segments": segments, "device_traces": traces})
    whole = memory_summary(path)
    monkeypatch.setattr(memory_snapshot, "_LARGEST_BYTES", 1000)
    monkeypatch.setattr(memory_snapshot, "_BEGINNING_BYTES", 40_000)
    found = memory_summary(path)
    assert found == replace(whole, releases=None, out_of_memory=None, is_partial=True)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (pickle.dumps({"segments": [Evil()] * 9, "x": "y" * 99}), "refused: "),
        (pickle.dumps({"segments": ["z" * 900], "x": 1}), "damaged, or longer"),
        (pickle.dumps(["z"] * 900), "does not begin with 'segments'"),
        (b"q" * 900, "damaged"),
    ],
)
def test_of_what_is_too_large_nothing_is_run_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory_snapshot, "_LARGEST_BYTES", 10)
    monkeypatch.setattr(memory_snapshot, "_BEGINNING_BYTES", 500)
    (tmp_path / "s.pickle").write_bytes(content)
    with pytest.raises(SnapshotError, match=why):
        memory_summary(tmp_path / "s.pickle")
    assert not (tmp_path / "evil").exists()
