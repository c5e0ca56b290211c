"""Who reads logs says how much of them was read, packed or not, and of a pipe only how much."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

from train_ledger.headway import Headway, heard_by
from train_ledger.sources import read_facts

LINES = "".join(f"step {step} loss 2.{step % 10}\n" for step in range(200_000)).encode()


def heard_of(*paths: Path) -> list[Headway]:
    heard: list[Headway] = []
    with heard_by(heard.append):
        facts = sum(1 for _ in read_facts(paths))
    assert facts >= 200_000
    return heard


def test_the_share_rises_to_all_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(LINES)
    (tmp_path / "old.log.gz").write_bytes(gzip.compress(LINES, 1))
    heard = heard_of(tmp_path)
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert {it.total for it in heard} == {total}
    done = [it.done for it in heard]
    assert done == sorted(done)
    assert (done[-1], len(set(done)) > 10) == (total, True)


def test_of_a_pipe_only_how_much_was_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as file:
            file.write(LINES)

    writer = threading.Thread(target=write)
    writer.start()
    heard = heard_of(Path(f"/dev/fd/{reading}"))
    writer.join()
    os.close(reading)
    assert {it.total for it in heard} == {None}
    assert max(it.done for it in heard) > len(LINES) / 2
