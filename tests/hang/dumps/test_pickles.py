"""Dumps are read as plain values; what is cut is saved up to the cut, everything else is refused in words."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from hang.recorder import Job
from train_ledger.hang.dumps.pickles import RefusedError, load


def job() -> Job:
    job = Job(2)
    for _ in range(6):
        job.issue(range(2), done=True)
    return job


class Hostile:
    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Any, Any]:
        return self.call, self.arguments


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_that_calls_something_is_refused_and_named(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "PICKLE_WAS_RUN"
    file = tmp_path / "rank_0"
    file.write_bytes(pickle.dumps({"entries": [Hostile(os.system, f"touch {mark}")]}, protocol=protocol))
    with pytest.raises(RefusedError, match=r"posix\.system; nothing of it was run"):
        load(file)
    assert not mark.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02ccollections\nOrderedDict\n.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
        b"\x80\x02(ibuiltins\nprint\n.",
        b"\x80\x02(cbuiltins\nprint\nK\x01o.",
    ],
    ids=["global", "stack_global", "inst", "obj"],
)
def test_every_way_to_a_global_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "rank_0").write_bytes(data)
    with pytest.raises(RefusedError, match="asks to call"):
        load(tmp_path / "rank_0")


@pytest.mark.parametrize("data", [b"\x80\x02Pid\n.", b"\x80\x02K\x01Q."], ids=["persid", "binpersid"])
def test_persistent_ids_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "rank_0").write_bytes(data)
    with pytest.raises(RefusedError, match="persistent id"):
        load(tmp_path / "rank_0")


@pytest.mark.parametrize("data", [b"\x80\x02\x82\x01.", b"\x80\x05\x97.", b"\x80\x02}b.", b"\x80\xff."])
def test_other_programs_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "rank_0").write_bytes(data)
    with pytest.raises(RefusedError):
        load(tmp_path / "rank_0")


def test_a_pickle_is_saved_up_to_the_cut(tmp_path: Path) -> None:
    whole = pickle.dumps(job().content(0), protocol=2)
    kept = []
    for cut in range(1, len(whole)):
        (tmp_path / "rank_0").write_bytes(whole[:cut])
        try:
            loaded = load(tmp_path / "rank_0")
        except RefusedError:
            continue
        entries = loaded.content.get("entries", [])
        assert entries == job().content(0)["entries"][: len(entries)]
        assert f"{len(entries)} entries before the cut" in (loaded.cut or "")
        kept.append(len(entries))
    assert kept == sorted(kept)
    assert kept[-1] >= 5


def test_json_is_saved_up_to_the_cut(tmp_path: Path) -> None:
    whole = json.dumps({"entries": job().content(0)["entries"], "version": "2.10"}).encode()
    (tmp_path / "rank_0").write_bytes(whole[: len(whole) * 2 // 3])
    loaded = load(tmp_path / "rank_0")
    assert 2 <= len(loaded.content["entries"]) < 6
    assert loaded.cut


def test_json_is_known_by_its_first_byte_not_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "rank_0.pickle").write_bytes(b'\n {"version": "2.10"}')
    assert load(tmp_path / "rank_0.pickle").content == {"version": "2.10"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty file"),
        (b"PK\x03\x04", "neither a pickle nor JSON"),
        (b"{not json", "no Flight Recorder dump"),
        (b"[" * 100_000, "damaged JSON|no Flight"),
        (b'{"a": "\xff"}', "damaged JSON"),
        (b"\x80\x02", "cut before the first value"),
    ],
)
def test_what_is_no_dump_is_refused_with_a_reason(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "rank_0").write_bytes(data)
    with pytest.raises(RefusedError, match=why):
        load(tmp_path / "rank_0")
