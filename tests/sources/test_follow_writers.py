"""Writers that misbehave in every known way, and a model beside them that knows what a reader could see.

Every complete line that any reader could have seen is read exactly once, and those of one rank in order.
Lines that were cut away before anybody looked are lost to all: the model forgets them.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from train_ledger.sources import FolderFollower, Follower
from train_ledger.sources.files import follow as follow_module
from train_ledger.sources.files.positions import Start

RANKS = st.integers(0, 2)
WORDS = st.text("aß日\N{GRINNING FACE} ", max_size=40)
LONG_AGO = (1, 1)


@dataclass
class Written:
    """One file of a rank: `lines` are its whole lines, `unfinished` how much of a line stands behind them."""

    lines: list[bytes] = field(default_factory=list)
    was_seen: bool = False


class Rank:
    """A writer, and what a reader must have read of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.handle = path.open("ab", buffering=0)
        self.files = [Written()]
        self.begun = self.rest = b""
        self.count = 0
        self.rotations = 0

    @property
    def due(self) -> list[bytes]:
        return [line for file in self.files for line in file.lines]

    def next_line(self, word: str) -> bytes:
        self.count += 1
        return f"{self.path.name} {self.count} {word}".encode()

    def begin(self, word: str, cut: float) -> None:
        self.finish()
        line = self.next_line(word)
        at = int(cut * len(line))
        self.handle.write(line[:at])
        self.begun, self.rest = line[:at], line[at:]

    def finish(self) -> None:
        if self.begun:
            self.handle.write(self.rest + b"\n")
            self.files[-1].lines.append(self.begun + self.rest)
            self.begun = b""

    def write(self, words: list[str]) -> None:
        self.finish()
        lines = [self.next_line(word) for word in words]
        self.handle.write(b"".join(line + b"\n" for line in lines))
        self.files[-1].lines += lines

    def reopen(self, mode: str = "ab") -> None:
        self.handle.close()
        self.handle = self.path.open(mode, buffering=0)

    def take_new_file(self) -> None:
        self.begun = b""
        self.files.append(Written())

    def lose_unread(self, got: int) -> None:
        """What was not read of the newest file is gone for good."""
        before = len(self.due) - len(self.files[-1].lines)
        del self.files[-1].lines[max(0, got - before) :]


class Writers(RuleBasedStateMachine):
    """Three ranks in one folder, and a reader of the folder that sometimes dies and is started anew."""

    ranks_read = (0, 1, 2)

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.folder = Path(self.place.name)
        self.shares = follow_module._SHARE_BYTES
        self.ranks = [Rank(self.folder / f"r{number}.log") for number in range(3)]
        self.got: list[list[bytes]] = [[], [], []]
        self.follower = self.new_follower()

    def new_follower(self) -> Follower:
        return FolderFollower(self.folder, place)

    def teardown(self) -> None:
        self.read_all()
        for number in self.ranks_read:
            assert self.got[number] == self.ranks[number].due
        for rank in self.ranks:
            rank.handle.close()
        follow_module._SHARE_BYTES = self.shares
        self.follower.close()
        self.place.cleanup()

    # -- what a writer does

    @rule(rank=RANKS, words=st.lists(WORDS, min_size=1, max_size=30))
    def write_lines(self, rank: int, words: list[str]) -> None:
        self.ranks[rank].write(words)

    @rule(rank=RANKS, word=WORDS, cut=st.floats(0, 1))
    def write_the_begin_of_a_line(self, rank: int, word: str, cut: float) -> None:
        """It may end within a character."""
        self.ranks[rank].begin(word, cut)

    @rule(rank=RANKS)
    def finish_a_line(self, rank: int) -> None:
        self.ranks[rank].finish()

    @rule(rank=RANKS)
    def cut_off_an_unfinished_line(self, rank: int) -> None:
        """As one does that mends its file when it starts again."""
        writer = self.ranks[rank]
        os.truncate(writer.path, writer.path.stat().st_size - len(writer.begun))
        writer.begun = b""
        writer.reopen()

    @rule(rank=RANKS, late=st.lists(WORDS, max_size=5))
    def rotate_by_rename(self, rank: int, late: list[str]) -> None:
        """The writer may write on for a while before it notices."""
        writer = self.ranks[rank]
        if not writer.files[-1].was_seen:
            self.rename_unseen(rank)
        writer.rotations += 1
        writer.path.rename(f"{writer.path}.{writer.rotations}")
        if late:
            writer.write(late)
        writer.take_new_file()
        writer.reopen()

    def rename_unseen(self, rank: int) -> None:
        """Whoever reads the folder finds it under its new name."""

    @rule(rank=RANKS, position_kept=st.booleans(), words=st.lists(WORDS, max_size=60))
    def copytruncate(self, rank: int, position_kept: bool, words: list[str]) -> None:
        """To something smaller, as large or larger; a writer that does not append leaves NULs in front."""
        writer = self.ranks[rank]
        writer.lose_unread(len(self.got[rank]))
        if position_kept:
            writer.reopen("r+b")
            writer.handle.seek(0, os.SEEK_END)
        os.truncate(writer.path, 0)
        writer.begun = b""
        if words:
            writer.write(words)

    @rule(rank=RANKS)
    def delete_and_make_anew(self, rank: int) -> None:
        writer = self.ranks[rank]
        if not writer.files[-1].was_seen:
            writer.lose_unread(len(self.got[rank]))
        writer.path.unlink()
        writer.take_new_file()
        writer.reopen()

    @rule(rank=RANKS, words=st.lists(WORDS, max_size=30))
    def replace_at_once(self, rank: int, words: list[str]) -> None:
        writer = self.ranks[rank]
        if not writer.files[-1].was_seen:
            writer.lose_unread(len(self.got[rank]))
        writer.take_new_file()
        lines = [writer.next_line(word) for word in words]
        aside = self.folder / "aside"
        aside.write_bytes(b"".join(line + b"\n" for line in lines))
        aside.rename(writer.path)
        writer.files[-1].lines += lines
        writer.reopen()

    @rule(rank=RANKS)
    def a_clock_steps_back(self, rank: int) -> None:
        os.utime(self.ranks[rank].path, LONG_AGO)

    @precondition(lambda self: not (self.folder / "r7.log").exists())
    @rule()
    def make_what_is_no_file(self) -> None:
        (self.folder / "r7.log").mkdir()
        os.mkfifo(self.folder / "r8.log")
        (self.folder / "r9.log").symlink_to("nowhere")

    # -- what the reader does

    @rule(share=st.sampled_from([5, 64, 1 << 16]), max_bytes=st.sampled_from([1, 200, 8 << 20]))
    def poll(self, share: int, max_bytes: int) -> None:
        follow_module._SHARE_BYTES = share
        self.take(max_bytes)

    def take(self, max_bytes: int = 8 << 20) -> None:
        for line in self.follower.poll(max_bytes):
            self.got[int(Path(line.file).name[1])].append(line.data)
        for rank in self.ranks:
            rank.files[-1].was_seen = True

    @rule()
    def read_all(self) -> None:
        self.take()
        while not self.follower.caught_up:
            self.take()

    @rule(rank=RANKS, word=WORDS, call=st.integers(0, 12))
    def read_while_the_server_forgets_files(self, rank: int, word: str, call: int) -> None:
        self.read_all()  # a file without a name cannot be opened again
        self.ranks[rank].write([word])
        with stale_at(call):
            self.take()
        self.read_all()

    @rule()
    def start_the_reader_anew(self) -> None:
        self.read_all()
        positions = self.follower.positions()
        self.follower.close()
        self.follower = self.new_follower()
        self.follower.begin(Start(positions))
        for rank in self.ranks:
            rank.files[-1].was_seen = False

    @invariant()
    def nothing_is_read_twice_or_out_of_order(self) -> None:
        for number in self.ranks_read:
            assert self.got[number] == self.ranks[number].due[: len(self.got[number])]


class WritersAndReaderOfOneName(Writers):
    """The same with a reader of one name: it must have seen a file before its renaming."""

    ranks_read = (0,)

    def new_follower(self) -> Follower:
        return Follower(self.folder / "r0.log")

    def rename_unseen(self, rank: int) -> None:
        self.read_all()


def place(name: str) -> tuple[int, int] | None:
    """(rank, age): the larger its number the newer a rotated file, and the bare one is the newest."""
    if not name.startswith("r"):
        return None
    number = name.rpartition(".")[2]
    return int(name[1]), int(number) if number.isdecimal() else 1 << 30


@contextmanager
def stale_at(call: int) -> Iterator[None]:
    """From the nth read on, three reads fail as on a server that forgot its files."""
    calls = iter(range(1 << 30))

    def pread(fd: int, length: int, offset: int) -> bytes:
        if call <= next(calls) < call + 3:
            raise OSError(errno.ESTALE, "Stale file handle")
        return genuine(fd, length, offset)

    genuine = os.pread
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", pread)
        yield


EXAMPLES = int(os.environ.get("FOLLOW_EXAMPLES", "100"))

TestWriters = Writers.TestCase
TestWritersAndReaderOfOneName = WritersAndReaderOfOneName.TestCase
TestWriters.settings = TestWritersAndReaderOfOneName.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
