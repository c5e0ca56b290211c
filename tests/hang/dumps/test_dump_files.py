"""Which files are read, what is listed instead, and what a bad file may cost."""

from __future__ import annotations

import os
import pickle
import random
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hang.recorder import Job
from train_ledger.config import Limits
from train_ledger.hang import RankKnowledge, analyse
from train_ledger.hang.dumps import dump_files, readers
from train_ledger.hang.dumps.dump_files import Dumps, host_of, rank_of, read_dumps

RECORDED = Path(__file__).parents[2] / "recorded" / "hang"
SMALL = Limits(dump_worker_bytes=400 << 20, dump_worker_cpu_s=3)


@pytest.fixture(autouse=True)
def _the_time_of_other_programs_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that gets no core for a while is not given up: here it is bounded by its own time alone."""
    receive = readers._receive
    monkeypatch.setattr(readers, "_receive", lambda stream, deadline: receive(stream, deadline + 600))


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
        ("rank_0000003", 3, None),
        ("rank_1048575", 1048575, None),
        ("rank_1048576", None, None),
        ("rank_99999999999", None, None),
        ("rank_" + "9" * 250, None, None),
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


def test_the_unfinished_file_of_a_writer_that_was_killed_names_no_rank(tmp_path: Path) -> None:
    folder = job().write(tmp_path)
    (folder / ".rank_0.k2vq8085").write_bytes(b"\x80\x02}q")
    answer = analyse([folder])
    assert (answer.culprits, answer.missing_dumps) == ((2,), ())
    assert [it.why for it in answer.unreadable] == ["hidden or unfinished file"]


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


# What is there but cannot be read


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder_of_that_name(path: Path) -> None:
    path.mkdir()


def dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def above_the_cap(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100_000)


def empty(path: Path) -> None:
    path.touch()


UNREADABLE = {
    pipe: "no regular file",
    folder_of_that_name: "a folder in the folder: name it to have its dumps read",
    dangling_link: "No such file or directory",
    above_the_cap: "refused: 100000 bytes, more than the 50000 allowed",
    empty: "empty file: the dump was created but never written",
}


@pytest.mark.parametrize("make", UNREADABLE, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", ["rank_{rank}", "x{rank}"])
def test_a_dump_that_is_there_but_not_readable_is_not_absent(
    tmp_path: Path, make: Callable[[Path], None], name: str
) -> None:
    folder = job().write(tmp_path, [0, 1, 3], name=name)
    make(folder / name.format(rank=2))
    answer = analyse([folder], limits=Limits(dump_bytes=50_000))
    assert (answer.verdict, answer.culprits, answer.missing_dumps) == ("cannot_tell", (), ())
    assert [it.why for it in answer.unreadable] == [UNREADABLE[make]]
    assert "dump of rank 2: there, but not readable" in answer.not_observed


def test_a_file_that_is_no_dump_by_its_name_makes_no_rank(tmp_path: Path) -> None:
    folder = job().write(tmp_path)
    (folder / "train_7.log").write_text("step 41")
    (folder / "attempt_9").mkdir()
    answer = analyse([folder])
    assert (answer.culprits, answer.missing_dumps) == ((2,), ())


def test_a_dump_that_vanishes_between_listing_and_reading_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = job().write(tmp_path)
    read_all = dump_files.read_all

    def after_it_vanished(jobs: list[Job], sizes: list[int], limits: Limits) -> Any:
        (folder / "rank_2").unlink()
        (folder / "rank_1").unlink()
        os.mkfifo(folder / "rank_1")
        return read_all(jobs, sizes, limits)  # type: ignore[arg-type]

    monkeypatch.setattr(dump_files, "read_all", after_it_vanished)
    read = read_dumps([folder], Limits())
    assert read.damaged == (1, 2)
    assert reasons(read)["rank_1"] == "no regular file"
    assert "No such file" in reasons(read)["rank_2"]


def test_a_folder_that_vanishes_or_is_locked_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: Path) -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", gone)
    assert analyse([tmp_path]).unreadable[0].why == "Permission denied"


def test_names_that_no_file_can_have_are_listed() -> None:
    answer = analyse([Path("rank\0_1"), Path("rank_" + "1" * 5000)])
    assert len(answer.unreadable) == 2


def test_a_byte_order_mark_before_json_is_passed_over(tmp_path: Path) -> None:
    folder = job().write(tmp_path, as_json=True)
    for path in folder.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    answer = analyse([folder])
    assert (answer.culprits, answer.unreadable) == ((2,), ())
    (folder / "rank_0").write_bytes(b"\xef\xbb\xbf")
    assert "empty file" in analyse([folder]).unreadable[0].why


# Numbers that are too large


@pytest.mark.parametrize("world_size", [10**9, 1 << 80, -4])
def test_a_world_size_that_cannot_be_is_said_and_not_used(tmp_path: Path, world_size: int) -> None:
    answer = analyse([job().write(tmp_path)], world_size=world_size)
    assert (answer.culprits, answer.missing_dumps) == ((2,), ())
    how = "more" if world_size > 0 else "less"
    assert f"world size: {world_size} is {how} than can be, and not used" in answer.not_observed


def test_a_number_that_is_no_rank_is_said(tmp_path: Path) -> None:
    folder = job().write(tmp_path)
    (folder / "rank_99999999999").write_bytes((folder / "rank_0").read_bytes())
    answer = analyse([folder], known={10**12: RankKnowledge(10**12)})
    assert (answer.culprits, answer.missing_dumps) == ((2,), ())
    assert answer.unreadable[0].why == "the number in its name is no rank: 1048576 or more"


@pytest.mark.parametrize(("ranks", "culprits"), [([0, 1, 3], ()), ([0, 1, 2, 3], (2,))])
def test_the_time_is_linear_in_the_members_of_a_group(
    tmp_path: Path, ranks: list[int], culprits: tuple[int, ...]
) -> None:
    made = job()
    made.groups["0"] = ("default_pg", list(range(500_000)))
    folder = made.write(tmp_path, ranks, as_json=True)
    started = time.monotonic()
    answer = analyse([folder], world_size=1_000_000)
    assert time.monotonic() - started < 100, "its square would take hours"
    assert answer.culprits == culprits


def test_a_table_with_more_members_than_can_be_is_refused_and_said(tmp_path: Path) -> None:
    made = job()
    made.groups |= {f"g{number}": ("large", list(range(300_000))) for number in range(4)}
    answer = analyse([made.write(tmp_path, as_json=True)])
    assert {it.why for it in answer.unreadable} == {
        "its groups list more than 1048576 members together: refused"
    }
    assert answer.culprits == ()


def test_groups_that_are_too_large_over_all_dumps_are_left_out_and_said(tmp_path: Path) -> None:
    made = job()
    for rank in (0, 1):
        made.issue([rank], group=made.group(f"g{rank}", range(600_000 + rank)))
        made.write(tmp_path, [rank], as_json=True)
        del made.groups[f"g{rank}"]
        made.entries[rank].pop()
    answer = analyse([made.write(tmp_path, [2, 3], as_json=True)])
    assert answer.culprits == (2,)
    assert "groups: 1 left out, for all together have more than 1048576 members" in answer.not_observed


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
    assert time.monotonic() - started < 120


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


def test_four_small_dumps_are_analysed_in_a_moment(tmp_path: Path) -> None:
    big = job()
    for _ in range(150):
        big.issue(range(4), done=True)
    folder = big.write(tmp_path)
    took_s = []
    for _ in range(3):
        started = time.monotonic()
        analyse([folder])
        took_s.append(time.monotonic() - started)
    assert min(took_s) < 10.0


def test_without_a_reader_every_file_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no process more is to be had."""
    for rank in range(3):
        (tmp_path / f"rank_{rank}").write_bytes(b"{}")
    (tmp_path / "python").touch(mode=0o600)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    read = read_dumps(sorted(tmp_path.glob("rank_*")), Limits())
    assert {it.why for it in read.unreadable} == {"its reader cannot be started: Permission denied"}
    assert read.damaged == (0, 1, 2)
