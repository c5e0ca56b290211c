"""Which files are read, what is listed instead, and what a bad file may cost."""

from __future__ import annotations

import os
import pickle
import random
import signal
import struct
import time
from pathlib import Path

import pytest

from hang.recorder import Job
from train_ledger.config import Limits
from train_ledger.hang import analyse, readers
from train_ledger.hang.dump_files import Dumps, host_of, rank_of, read_dumps

RECORDED = Path(__file__).parents[1] / "recorded" / "hang"
SMALL = Limits(dump_worker_bytes=400 << 20, dump_worker_cpu_s=3)


def job(world: int = 4) -> Job:
    """Rank 2 does not come to the fourth collective."""
    job = Job(world)
    for _ in range(3):
        job.issue(range(world), done=True)
    job.issue([rank for rank in range(world) if rank != 2])
    return job


def reasons(read: Dumps) -> dict[str, str]:
    return {Path(entry.file).name: entry.why for entry in read.unreadable}


@pytest.mark.parametrize(
    ("name", "rank", "host"),
    [
        ("rank_5", 5, None),
        ("nccl_trace_rank_5", 5, None),
        ("_dump_14", 14, None),
        ("comm_lib_trace_rank_7.json", 7, None),
        ("nccl_trace_rank_node-00_12", 12, "node-00"),
        ("nccl_trace_rank_container-node02_5", 5, "container-node02"),
        ("rank_00003.pickle", 3, None),
        ("notes.txt", None, None),
    ],
)
def test_rank_and_host_are_told_from_the_name(name: str, rank: int | None, host: str | None) -> None:
    assert rank_of(name) == rank
    assert host_of(name) == host


@pytest.mark.parametrize("name", ["rank_{rank}", "nccl_trace_rank_node-0_{rank}", "x{rank}.pickle"])
def test_any_prefix_will_do(tmp_path: Path, name: str) -> None:
    assert analyse([job().write(tmp_path, name=name)]).culprits == (2,)


def test_json_dumps_of_active_entries_say_the_same(tmp_path: Path) -> None:
    folder = job().write(tmp_path, name="rank_{rank}.json", as_json=True, active_only=True)
    assert analyse([folder]).culprits == (2,)


def test_pickles_and_json_may_be_mixed_and_files_named_one_by_one(tmp_path: Path) -> None:
    job().write(tmp_path, [0, 1])
    job().write(tmp_path, [2, 3], as_json=True)
    assert analyse(sorted(tmp_path.iterdir())).culprits == (2,)


def test_what_is_no_dump_is_listed_and_stops_nothing(tmp_path: Path) -> None:
    job().write(tmp_path)
    (tmp_path / "README.txt").write_text("dumps of monday")
    (tmp_path / "train_7.log").write_text("step 41 loss 2.1")
    (tmp_path / ".rank_1.tmp").write_bytes(b"")
    (tmp_path / "attempt_1").mkdir()
    os.mkfifo(tmp_path / "rank_0.pipe")
    read = read_dumps([tmp_path], Limits())
    assert [dump.rank for dump in read.dumps] == [0, 1, 2, 3]
    assert reasons(read) == {
        "README.txt": "no rank in its name: a dump's name ends in its rank, as rank_5",
        "train_7.log": "no Flight Recorder dump: neither a pickle nor JSON",
        ".rank_1.tmp": "hidden or unfinished file",
        "attempt_1": "a folder in the folder: name it to have its dumps read",
        "rank_0.pipe": "no regular file",
    }


def test_names_may_hold_any_bytes(tmp_path: Path) -> None:
    folder = job().write(tmp_path)
    os.rename(folder / "rank_1", os.fsencode(folder) + b"/caf\xe9_rank_1")
    os.rename(folder / "rank_0", os.fsencode(folder) + b"/\xff.txt")
    answer = analyse([folder])
    assert (answer.culprits, answer.missing_dumps) == ((2,), (0,))
    answer.unreadable[0].file.encode()


def test_a_path_that_is_not_there_is_listed(tmp_path: Path) -> None:
    answer = analyse([tmp_path / "nowhere"])
    assert answer.verdict == "cannot_tell"
    assert answer.unreadable[0].why == "No such file or directory"


def test_a_dump_from_before_the_hang_is_stale(tmp_path: Path) -> None:
    folder = job().write(tmp_path)
    os.utime(folder / "rank_2", (1_764_000_000, 1_764_000_000))
    answer = analyse([folder], since_t=1_764_000_500)
    assert answer.stale == (str(folder / "rank_2"),)
    assert answer.missing_dumps == (2,)


def test_of_two_dumps_of_a_rank_the_newer_counts(tmp_path: Path) -> None:
    job().write(tmp_path)
    old = Job(4)
    old.issue([2], "broadcast")
    old.write(tmp_path, [2], name="old_rank_{rank}")
    answer = analyse([tmp_path])
    assert answer.culprits == (2,)
    assert answer.kind == "missing_ranks"
    assert answer.stale == (str(tmp_path / "old_rank_2"),)


def test_the_dump_of_an_earlier_attempt_is_told_by_its_times(tmp_path: Path) -> None:
    folder = job().write(tmp_path)
    content = job().content(3)
    for entry in content["entries"]:
        entry["time_created_ns"] -= 86_400 * 10**9
    (folder / "rank_3").write_bytes(pickle.dumps(content, protocol=2))
    answer = analyse([folder])
    assert answer.stale == (str(folder / "rank_3"),)
    assert answer.culprits == (2,)


# Files that ask for too much

BOMBS = {
    "bytes": b"\x80\x04}(X\x07\x00\x00\x00entries\x8e" + struct.pack("<Q", 3 << 30) + b"x",
    "unicode": b"\x80\x04}(X\x07\x00\x00\x00entries\x8d" + struct.pack("<Q", 3 << 30) + b"x",
    "long": b"\x80\x02\x8b" + struct.pack("<i", 0x7FFFFFFF) + b"x",
    "memo": b"\x80\x02r" + struct.pack("<I", 0xFFFFFF00) + b".",
    "surrogates": b"\x80\x02X\x03\x00\x00\x00\xed\xa0\x80X\x01\x00\x00\x00a\x93.",
    "memo_put": b"\x80\x02]r" + struct.pack("<I", 0x7FFFFF00) + b".",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_dump_that_asks_for_gigabytes_ends_in_a_refusal(tmp_path: Path, name: str) -> None:
    folder = job().write(tmp_path)
    (folder / "rank_9").write_bytes(BOMBS[name])
    read = read_dumps([folder], SMALL)
    assert [dump.rank for dump in read.dumps] == [0, 1, 2, 3]
    assert list(reasons(read)) == ["rank_9"]
    assert read.damaged == (9,)


def test_memory_of_a_worker_is_bounded(tmp_path: Path) -> None:
    """A pickle of 8 MB that makes a list in memory for every byte: half a gigabyte."""
    (tmp_path / "rank_0").write_bytes(b"\x80\x02(" + b"]" * (8 << 20) + b"t.")
    read = read_dumps([tmp_path], SMALL)
    assert reasons(read) == {"rank_0": "refused: it asks for more than 400 MiB of memory"}


def test_time_of_a_worker_is_bounded(tmp_path: Path) -> None:
    """Keys that all fall into one bucket: n² comparisons for n small keys."""
    folder = job().write(tmp_path)
    modulus = (1 << 61) - 1
    keys = b"".join(
        b"\x8a\x11" + (index * modulus).to_bytes(17, "little") + b"N" for index in range(1, 120_000)
    )
    (folder / "rank_9").write_bytes(b"\x80\x02}(" + keys + b"u.")
    started = time.monotonic()
    read = read_dumps([folder], Limits(dump_worker_cpu_s=1))
    assert reasons(read) == {"rank_9": "refused: reading it took more than 1 s of CPU time"}
    assert [dump.rank for dump in read.dumps] == [0, 1, 2, 3]
    assert time.monotonic() - started < 15


def test_a_file_above_the_cap_is_not_opened(tmp_path: Path) -> None:
    with (tmp_path / "rank_0").open("wb") as file:
        file.truncate(1 << 20)
    read = read_dumps([tmp_path], Limits(dump_bytes=1000))
    assert reasons(read) == {"rank_0": "refused: 1048576 bytes, more than the 1000 allowed"}


def test_a_reader_that_dies_takes_only_its_file_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crash is made by a signal from outside, at the moment the worker is given rank 1's file."""
    folder = job().write(tmp_path)
    send = readers._Worker.ask

    def ask(worker: readers._Worker, wanted: readers.Job) -> readers.Reply:
        if wanted.rank == 1:
            os.kill((worker._process or worker._start()).pid, signal.SIGSEGV)
            time.sleep(0.2)
        return send(worker, wanted)

    monkeypatch.setattr(readers._Worker, "ask", ask)
    read = read_dumps([folder], Limits())
    assert [dump.rank for dump in read.dumps] == [0, 2, 3]
    assert reasons(read) == {"rank_1": "refused: its reader died of SIGSEGV at this file"}


def test_deeply_nested_values_are_refused_or_read_but_stop_nothing(tmp_path: Path) -> None:
    folder = job().write(tmp_path)
    (folder / "rank_8").write_bytes(b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".")
    (folder / "rank_9").write_bytes(b"\x80\x02}" + b")" + b"\x85" * 2_000_000 + b"Ns.")
    read = read_dumps([folder], SMALL)
    assert [dump.rank for dump in read.dumps] == [0, 1, 2, 3]
    assert set(reasons(read)) == {"rank_8", "rank_9"}


def test_mutated_dumps_are_read_or_refused_and_never_raise(tmp_path: Path) -> None:
    """Random bytes changed, removed or doubled in real dumps; the answer stays an answer."""
    chance = random.Random(20_26)
    originals = [path.read_bytes() for path in sorted(RECORDED.glob("*/rank_*"))]
    originals += [
        path.read_bytes() for path in sorted(job().write(tmp_path / "made", as_json=True).iterdir())
    ]
    folder = tmp_path / "mutated"
    folder.mkdir()
    for number in range(400):
        (folder / f"rank_{number}").write_bytes(_mutated(chance.choice(originals), chance))
    read = read_dumps([folder], SMALL)
    listed = {rank_of(name) for name in reasons(read)} | {dump.rank for dump in read.dumps}
    stale = {rank_of(Path(file).name) for file in read.stale}
    assert listed | stale == set(range(400))
    assert all(reasons(read).values())
    assert analyse([folder], limits=SMALL).verdict in ("hang", "no_hang", "cannot_tell")


def _mutated(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(changed))
        what = chance.randrange(4)
        if what == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            changed[at] = chance.randrange(256)
        elif what == 2:
            del changed[at : at + chance.randint(1, 16)]
        else:
            changed[at:at] = changed[at : at + chance.randint(1, 64)]
        if not changed:
            return b"\x80"
    return bytes(changed)


def test_four_small_dumps_are_analysed_within_a_second(tmp_path: Path) -> None:
    big = job()
    for _ in range(150):
        big.issue(range(4), done=True)
    folder = big.write(tmp_path)
    took_s = []
    for _ in range(3):
        started = time.monotonic()
        analyse([folder])
        took_s.append(time.monotonic() - started)
    assert min(took_s) < 1.0
