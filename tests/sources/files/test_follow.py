"""Files that other programs append to, rotate, cut, delete and make anew."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from train_ledger.sources import FolderFollower, Follower
from train_ledger.sources.files import parts
from train_ledger.sources.files.positions import Start
from train_ledger.sources.files.stream import LINE_LIMIT_BYTES


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def read(follower: Follower, **limits: int) -> list[bytes]:
    return [line.data for line in follower.poll(**limits)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "rank.jsonl"


def test_a_torn_line_is_delivered_once_and_whole(log: Path) -> None:
    follower = Follower(log)
    append(log, b'{"step": 1}\n{"st')
    assert read(follower) == [b'{"step": 1}']
    assert read(follower) == []
    append(log, b'ep": 2}\n')
    assert read(follower) == [b'{"step": 2}']


def test_a_line_torn_inside_a_character_is_put_together(log: Path) -> None:
    follower = Follower(log)
    whole = "größer\n".encode()
    append(log, whole[:3])
    assert read(follower) == []
    append(log, whole[3:])
    assert read(follower) == [whole[:-1]]


def test_lines_say_where_they_stand(log: Path) -> None:
    append(log, b"a\nb\n")
    follower = Follower(log)
    follower.poll()
    append(log, b"c\n")
    (line,) = follower.poll()
    assert (line.file, line.number) == (str(log), 3)


def test_a_file_may_come_later(log: Path) -> None:
    follower = Follower(log)
    assert read(follower) == []
    append(log, b"a\n")
    assert read(follower) == [b"a"]
    assert not follower.skipped


def test_copytruncate_starts_over(log: Path) -> None:
    append(log, b"".join(b"step %d\n" % step for step in range(50)))
    follower = Follower(log)
    assert len(read(follower)) == 50
    os.truncate(log, 0)
    append(log, b"".join(b"step %d\n" % step for step in range(100, 105)))
    assert read(follower)[-1] == b"step 104"
    assert follower.skipped["truncated"] == 1


@pytest.mark.parametrize("more", [0, 1, 500])
def test_a_file_written_anew_in_place_and_as_long_as_before_starts_over(log: Path, more: int) -> None:
    append(log, b"old %04d\n" % 1 * 50)
    follower = Follower(log)
    read(follower)
    new = [b"new %04d" % number for number in range(50 + more)]
    log.write_bytes(b"".join(line + b"\n" for line in new))
    assert read(follower) == new


def test_a_change_within_one_tick_of_the_file_systems_clock_is_seen(log: Path) -> None:
    append(log, b"old\n")
    follower = Follower(log)
    read(follower)
    tick = log.stat().st_mtime_ns
    log.write_bytes(b"new\n")
    os.utime(log, ns=(tick, tick))
    assert read(follower) == [b"new"]


def test_the_rest_of_a_renamed_file_comes_before_the_new_one(log: Path) -> None:
    append(log, b"a\n")
    follower = Follower(log)
    read(follower)
    with log.open("ab", buffering=0) as writer:
        writer.write(b"b\n")
        log.rename(log.with_suffix(".old"))
        append(log, b"d\n")
        writer.write(b"c\n")
    assert read(follower) == [b"b", b"c", b"d"]


def test_a_renamed_file_is_followed_while_its_writer_goes_on(log: Path) -> None:
    follower = Follower(log)
    with log.open("ab", buffering=0) as writer:
        writer.write(b"a\n")
        read(follower)
        log.rename(log.with_suffix(".old"))
        append(log, b"b\n")
        assert read(follower) == [b"b"]
        writer.write(b"late\n")
        assert read(follower) == [b"late"]


def test_a_silent_renamed_file_is_let_go(log: Path) -> None:
    follower = Follower(log, drain_s=0.0)
    append(log, b"a\nunfinished")
    read(follower)
    log.rename(log.with_suffix(".old"))
    append(log, b"b\n")
    assert read(follower) == [b"b"]
    assert follower.files == 1
    assert follower.skipped["torn"] == 1


@pytest.mark.parametrize("length", [1, 2, 30])
def test_a_deleted_and_recreated_file_is_read_from_its_start(log: Path, length: int) -> None:
    append(log, b"same header\n" + b"a\n")
    follower = Follower(log)
    read(follower)
    log.unlink()
    append(log, b"same header\n" + b"b\n" * length)
    assert read(follower) == [b"same header", *[b"b"] * length]


def test_nuls_that_a_truncation_left_are_stepped_over(log: Path) -> None:
    log.write_bytes(b"x" * 4095 + b"\n")
    follower = Follower(log)
    read(follower)
    with log.open("r+b", buffering=0) as writer:  # a writer that does not append keeps its position
        writer.seek(0, os.SEEK_END)
        os.truncate(log, 0)
        writer.write(b'{"step": 7}\n')
    assert read(follower) == [b'{"step": 7}']
    assert follower.skipped["nul_bytes"] == 4096


def test_a_hole_of_gigabytes_takes_one_poll_or_two(log: Path) -> None:
    with log.open("wb") as writer:
        writer.seek(8 << 30)
        writer.write(b"after the hole\n")
    follower = Follower(log)
    assert read(follower) + read(follower) == [b"after the hole"]


def test_nuls_at_the_end_are_awaited_since_the_data_may_still_come(log: Path) -> None:
    follower = Follower(log)
    log.write_bytes(b"a\n" + b"\0" * 100)  # as NFS shows a write that has not arrived, or fallocate
    assert read(follower) == [b"a"]
    with log.open("r+b") as writer:
        writer.seek(2)
        writer.write(b"b\n")
    assert read(follower) == [b"b"]
    assert not follower.skipped


def test_what_was_cut_off_before_nuls_is_counted(log: Path) -> None:
    log.write_bytes(b'{"st' + b"\0" * 10 + b'{"step": 1}\n')
    follower = Follower(log)
    assert read(follower) == [b'{"step": 1}']
    assert follower.skipped == {"nul_bytes": 10, "torn": 1}


@pytest.mark.parametrize("length", [LINE_LIMIT_BYTES + 1, 3 * LINE_LIMIT_BYTES])
@pytest.mark.parametrize("max_bytes", [1 << 16, 1 << 24])
def test_an_endless_line_is_skipped_and_counted(log: Path, length: int, max_bytes: int) -> None:
    log.write_bytes(b"a\n" + b"x" * length + b"\nb\n")
    follower = Follower(log)
    lines = []
    while not lines or not follower.caught_up:
        lines += read(follower, max_bytes=max_bytes)
    assert lines == [b"a", b"b"]
    assert follower.skipped == {"too_long": 1}


def test_a_poll_is_bounded_and_says_what_is_left(log: Path) -> None:
    append(log, b"%099d\n" % 1 * 10_000)
    follower = Follower(log)
    first = read(follower, max_bytes=100_000)
    assert 0 < len(first) <= 1000
    assert follower.lag_bytes == 1_000_000 - 100_000
    assert not follower.caught_up


class TestWhatIsNoFile:
    def test_a_directory_a_fifo_and_a_socket(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").mkdir()
        os.mkfifo(tmp_path / "b.jsonl")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(tmp_path / "c.jsonl"))
            follower = everything(tmp_path)
            assert read(follower) == read(follower) == []
        assert follower.skipped == {"not_a_file": 3}

    def test_a_dangling_link_is_counted_until_it_leads_somewhere(self, tmp_path: Path) -> None:
        (tmp_path / "link.jsonl").symlink_to(tmp_path / "target")
        follower = everything(tmp_path)
        assert read(follower) == read(follower) == []
        assert follower.skipped == {"dangling_link": 1}
        append(tmp_path / "target", b"a\n")
        assert read(follower) == [b"a"]

    def test_a_name_that_vanished_between_two_looks(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        follower = everything(tmp_path)
        monkeypatch.setattr(os, "listdir", lambda _: ["gone.jsonl"])
        assert read(follower) == []
        assert follower.skipped == {"vanished": 1}

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_an_unreadable_file(self, log: Path) -> None:
        log.write_bytes(b"a\n")
        log.chmod(0)
        follower = Follower(log)
        assert read(follower) == read(follower) == []
        assert follower.skipped == {"unreadable": 1}
        assert follower.last_problem == f"{log}: Permission denied"

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        follower = everything(tmp_path / "signals")
        assert read(follower) == []
        assert not follower.skipped

    def test_a_file_that_the_server_forgot(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        append(log, b"a\n")
        follower = Follower(log)
        with monkeypatch.context() as stale:
            stale.setattr(os, "pread", raises_stale)
            assert read(follower) == []
        assert follower.skipped == {"stale": 1}
        assert read(follower) == [b"a"]


def raises_stale(*_: object) -> bytes:
    raise OSError(116, "Stale file handle")


def everything(folder: Path) -> FolderFollower:
    return FolderFollower(folder, lambda name: (0, 0) if name.endswith(".jsonl") else None)


def rotated(name: str) -> tuple[int, int] | None:
    """a.log.2 is older than a.log.1 is older than a.log."""
    return (0, -int(name.rpartition(".")[2])) if name[-1].isdecimal() else (0, 0)


class TestFolder:
    def test_older_files_of_a_series_come_first(self, tmp_path: Path) -> None:
        for name, data in (("a.log", b"3\n"), ("a.log.1", b"2\n"), ("a.log.2", b"1\n")):
            append(tmp_path / name, data)
        assert read(FolderFollower(tmp_path, rotated)) == [b"1", b"2", b"3"]

    def test_a_file_renamed_within_the_series_is_not_read_again(self, tmp_path: Path) -> None:
        follower = FolderFollower(tmp_path, rotated)
        append(tmp_path / "a.log", b"1\n")
        assert read(follower) == [b"1"]
        append(tmp_path / "a.log", b"2\n")
        (tmp_path / "a.log").rename(tmp_path / "a.log.1")
        append(tmp_path / "a.log", b"3\n")
        assert read(follower) == [b"2", b"3"]

    def test_a_second_name_of_a_file_is_not_read_again(self, tmp_path: Path) -> None:
        append(tmp_path / "a.log", b"1\n")
        os.link(tmp_path / "a.log", tmp_path / "a.log.1")
        (tmp_path / "a.log.2").symlink_to("a.log")
        assert read(FolderFollower(tmp_path, rotated)) == [b"1"]

    @pytest.mark.parametrize("max_bytes", [1, 300_000])
    def test_a_newer_file_waits_for_the_backlog_of_the_older(self, tmp_path: Path, max_bytes: int) -> None:
        append(tmp_path / "a.log.1", b"".join(b"%099d\n" % number for number in range(2000)))
        append(tmp_path / "a.log", b"".join(b"%099d\n" % number for number in range(2000, 2010)))
        follower = FolderFollower(tmp_path, rotated)
        numbers: list[int] = []
        while len(numbers) < 2010:
            numbers += [int(line) for line in read(follower, max_bytes=max_bytes)]
        assert numbers == list(range(2010))

    def test_a_newer_file_that_lost_its_name_waits_for_the_older_ones_too(self, tmp_path: Path) -> None:
        append(tmp_path / "a.log.1", b"%099d\n" % 1 * 2000)
        append(tmp_path / "a.log", b"2\n")
        follower = FolderFollower(tmp_path, rotated)
        lines = read(follower, max_bytes=1)
        (tmp_path / "a.log").unlink()
        append(tmp_path / "a.log", b"3\n")
        while len(lines) < 2002:
            lines += read(follower, max_bytes=1)
        assert lines[2000:] == [b"2", b"3"]

    def test_no_file_runs_ahead_of_the_others(self, tmp_path: Path) -> None:
        for rank in range(4):
            append(tmp_path / f"rank.{rank}", b"%099d\n" % 1 * 10_000)
        follower = FolderFollower(tmp_path, lambda name: (int(name[-1]), 0))
        counts = dict.fromkeys(range(4), 0)
        for line in follower.poll(max_bytes=1_000_000):
            counts[int(line.file[-1])] += 1
        assert len(set(counts.values())) == 1


class TestManyFiles:
    """More than a few, of which none says anything: they are looked at in turn."""

    @pytest.fixture
    def follower(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderFollower]:
        monkeypatch.setattr(parts, "_QUIET_S", 0.0)
        for rank in range(200):
            append(tmp_path / f"rank.{rank}", b"begin\n")
        follower = FolderFollower(tmp_path, lambda name: (int(name.rpartition(".")[2]), 0))
        with follower:
            assert len(read(follower)) == 200
            read(follower)
            yield follower

    def test_one_that_speaks_up_is_heard_within_four_looks(
        self, follower: FolderFollower, tmp_path: Path
    ) -> None:
        append(tmp_path / "rank.77", b"alone\n")
        assert [line for _ in range(4) for line in read(follower)] == [b"alone"]

    def test_the_first_that_speaks_up_brings_all_others_back(
        self, follower: FolderFollower, tmp_path: Path
    ) -> None:
        for rank in range(200):
            append(tmp_path / f"rank.{rank}", b"step\n")
        assert read(follower) == [b"step"] * 200

    def test_a_new_or_renamed_file_among_them_is_found(
        self, follower: FolderFollower, tmp_path: Path
    ) -> None:
        append(tmp_path / "rank.200", b"new\n")
        with (tmp_path / "rank.5").open("ab", buffering=0) as writer:
            (tmp_path / "rank.5").rename(tmp_path / "rank.500")
            writer.write(b"renamed\n")
        assert sorted(line for _ in range(4) for line in read(follower)) == [b"new", b"renamed"]

    def test_no_look_takes_all_of_them_while_they_are_silent(
        self, follower: FolderFollower, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks = []
        genuine = os.stat
        monkeypatch.setattr(os, "stat", lambda path, **more: (looks.append(path), genuine(path, **more))[1])
        for _ in range(4):
            assert read(follower) == []
        assert len(looks) == 200 + 4, "each once in four looks, and the folder in each"

    def test_no_more_files_than_the_system_allows_is_no_reason_to_fail(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for rank in range(3):
            append(tmp_path / f"rank.{rank}", b"%d\n" % rank)
        follower = FolderFollower(tmp_path, lambda name: (int(name.rpartition(".")[2]), 0))
        genuine, opened = os.open, []

        def scarce(path: str, flags: int, *more: int) -> int:
            if len(opened) == 2:
                raise OSError(errno.EMFILE, "Too many open files")
            opened.append(path)
            return genuine(path, flags, *more)

        with monkeypatch.context() as few:
            few.setattr(os, "open", scarce)
            assert len(read(follower)) == 2
            assert read(follower) == []
        assert follower.skipped == {"too_many_open_files": 1}
        assert len(read(follower)) == 1


def test_a_file_that_the_server_forgot_is_gone_on_with_where_it_stood(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, b"a\nb\nc")
    follower = Follower(log)
    assert read(follower) == [b"a", b"b"]
    append(log, b"d\n")
    with monkeypatch.context() as stale:
        stale.setattr(os, "pread", raises_stale)
        assert read(follower) == []
    assert read(follower) == [b"cd"]


class TestGoingOn:
    """A reader that begins where another one stopped."""

    def test_an_inode_that_is_used_again_for_the_same_name_size_and_head_is_a_new_file(
        self, log: Path
    ) -> None:
        head = b'{"event": "run_start", "host": "node1", "world_size": 8, "pid": 4711}\n'
        append(log, head + b'{"step": 1}\n')
        first = Follower(log)
        read(first)
        (position,) = first.positions()
        first.close()
        log.unlink()
        append(log, head + b'{"step": 9}\n')
        status = log.stat()
        again = msgspec.structs.replace(position, device=status.st_dev, inode=status.st_ino)
        second = Follower(log)
        second.begin(Start((again,)))
        assert read(second)[1] == b'{"step": 9}'
        assert second.skipped == {"truncated": 1}

    def test_a_device_number_may_change_when_a_machine_starts_anew(self, log: Path) -> None:
        append(log, b"a\n")
        first = Follower(log)
        read(first)
        (position,) = first.positions()
        log.rename(log.with_suffix(".old"))
        log.write_bytes(log.with_suffix(".old").read_bytes() + b"b\n")  # as a restored copy has it
        second = Follower(log)
        second.begin(Start((msgspec.structs.replace(position, device=999),)))
        assert read(second) == [b"b"]

    def test_what_came_meanwhile_is_read_from_its_start_however_large(self, tmp_path: Path) -> None:
        append(tmp_path / "rank.0", b"a\n")
        first = FolderFollower(tmp_path, lambda name: (int(name[-1]), 0))
        read(first)
        positions = first.positions()
        append(tmp_path / "rank.1", b"%099d\n" % 1 * 3000)
        second = FolderFollower(tmp_path, lambda name: (int(name[-1]), 0))
        second.begin(Start(positions))
        assert len(read(second)) == 3000

    def test_large_files_that_nobody_knows_share_what_is_read_of_them(self, tmp_path: Path) -> None:
        for rank in range(2):
            append(tmp_path / f"rank.{rank}", b"".join(b"%099d\n" % line for line in range(10_000)))
        append(tmp_path / "rank.2", b"small\n")
        follower = FolderFollower(tmp_path, lambda name: (int(name[-1]), 0))
        follower.begin(Start((), whole_bytes=300_000))
        lines = read(follower)
        while not follower.caught_up:
            lines += read(follower)
        assert b"small" in lines
        assert lines.count(b"%099d" % 9_999) == 2
        assert 900 < len(lines) < 1200
        assert follower.left_out_bytes == 2_000_000 - 100 * (len(lines) - 1)
        append(tmp_path / "rank.3", b"%099d\n" % 1 * 10_000)
        assert len(read(follower)) == 10_000
