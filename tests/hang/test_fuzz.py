"""Whatever is done to a dump, it is read or refused in words; bench/hang_fuzz.py does the same for longer."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hang.fuzz import check_batch, write_batch
from hang.mutations import jobs
from train_ledger.config import Limits
from train_ledger.hang.dumps.dump_files import read_dumps

JOBS = jobs()


@pytest.mark.parametrize("name", JOBS)
def test_any_change_is_read_or_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    spans, changed = write_batch(tmp_path, {name: JOBS[name]}, 48, random.Random(f"{name} once"))
    became = check_batch(tmp_path, spans)
    assert changed > 24
    assert became["read"]


def test_a_small_file_gets_little_memory(tmp_path: Path) -> None:
    """Six bytes that make room for a hundred million things to remember."""
    (tmp_path / "rank_0").write_bytes(b"\x80\x02]r\xff\xff\xff\x07.")
    read = read_dumps([tmp_path], Limits())
    assert [it.why for it in read.unreadable] == ["refused: it asks for more than 256 MiB of memory"]


def test_what_refers_to_itself_does_not_stay_in_memory(tmp_path: Path) -> None:
    """A list that holds itself is freed by nobody but the collector of garbage; here 100 MB a file."""
    for rank in range(12):
        loop = b"]q\x00(h\x00" + b"\x8f" * (1 << 19) + b"e"
        (tmp_path / f"rank_{rank}").write_bytes(b"\x80\x02}(X\x07\x00\x00\x00version" + loop + b"u.")
    read = read_dumps([tmp_path], Limits(dump_worker_bytes=1 << 30))
    assert len(read.dumps) == 12
