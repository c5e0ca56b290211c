"""Where a recorder writes: by one process, whole lines, within bounds."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from train_ledger.run_dir import RunDir
from train_ledger.watch.hardware_store import HardwareStore


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


def test_one_process_a_host_writes(run: RunDir) -> None:
    first, second, other = HardwareStore(run, "n7"), HardwareStore(run, "n7"), HardwareStore(run, "n8")
    assert (first.claim(), first.claim(), second.claim(), other.claim()) == (True, True, False, True)
    first.release()
    assert second.claim()
    second.release()
    other.release()


def test_where_the_file_system_knows_no_locks_one_process_of_the_host_writes(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    first, second = HardwareStore(run, "n7"), HardwareStore(run, "n7")
    assert (first.claim(), second.claim()) == (True, False)
    first.release()
    assert second.claim()
    second.release()


def test_files_are_rotated_by_size_and_few_are_kept(run: RunDir) -> None:
    store = HardwareStore(run, "n7", file_bytes=100)
    store.claim()
    for number in range(40):
        store.append(store.readings, [f"{number:039d}"])
    names = sorted(it.name for it in run.hardware.iterdir() if not it.name.startswith("."))
    assert names == ["n7.jsonl", "n7.jsonl.1", "n7.jsonl.2", "n7.jsonl.3"]
    assert sum((run.hardware / name).stat().st_size for name in names) <= 400
    lines = "".join((run.hardware / name).read_text() for name in reversed(names)).split()
    assert [int(it) for it in lines] == list(range(40 - len(lines), 40))
    store.release()


def test_behind_a_torn_line_a_new_one_begins(run: RunDir) -> None:
    store = HardwareStore(run, "n7")
    store.claim()
    store.kernel.write_text("whole\ntor")
    store.append(store.kernel, ["next"])
    assert store.kernel.read_text() == "whole\ntor\nnext\n"
    store.release()


def test_a_link_is_not_written_through(run: RunDir, tmp_path: Path) -> None:
    store = HardwareStore(run, "n7")
    store.claim()
    target = tmp_path / "target"
    target.write_text("")
    store.readings.symlink_to(target)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        store.append(store.readings, ["x"])
    assert target.read_text() == ""
    store.release()


def test_a_pipe_that_nobody_reads_is_not_written_into(run: RunDir) -> None:
    store = HardwareStore(run, "n7")
    assert store.claim()
    os.mkfifo(store.kernel)
    with pytest.raises(OSError, match="is no file"):
        store.append(store.kernel, ["x" * 1000] * 1000)
    store.release()


def test_a_place_is_kept_for_the_next_one(run: RunDir) -> None:
    store = HardwareStore(run, "n7")
    store.claim()
    assert store.read_place() is None
    store.write_place({"by": "/dev/kmsg", "number": 7})
    assert HardwareStore(run, "n7").read_place() == {"by": "/dev/kmsg", "number": 7}
    (run.hardware / ".n7.place.json").write_text("{")
    assert store.read_place() is None
    store.release()


@pytest.mark.parametrize("host", ["../../etc/x", ".hidden", "..", "/"])
def test_no_name_of_a_host_leads_elsewhere(run: RunDir, host: str) -> None:
    store = HardwareStore(run, host)
    assert {store.readings.parent, store.kernel.parent} == {run.hardware}
    assert not store.readings.name.startswith(".")
