"""A file that was named for an answer is written, and what is no file is not replaced by one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from train_ledger.cli.leave import BadInputError
from train_ledger.cli.output import write_file


def test_a_new_file_and_an_old_one(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    write_file(file, b"one")
    file.chmod(0o600)
    write_file(file, b"two")
    assert file.read_bytes() == b"two"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"")
    link = tmp_path / "link"
    link.symlink_to("old")
    write_file(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "old").read_bytes() == b"new"


def test_a_device_is_written_into() -> None:
    before = os.stat("/dev/full").st_rdev
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_file(Path("/dev/full"), b"x")
    write_file(Path("/dev/null"), b"x")
    assert os.stat("/dev/full").st_rdev == before


def test_a_fifo_is_written_into_where_somebody_reads(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(BadInputError, match="nobody reads it"):
        write_file(fifo, b"x")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    kept_open = os.open(fifo, os.O_WRONLY)  # or the reader could meet the end before the beginning
    data = b"x" * 200_000  # more than a pipe holds
    writer = threading.Thread(target=write_file, args=(fifo, data))
    writer.start()
    with open(reader, "rb") as file:
        assert file.read(len(data)) == data
        os.close(kept_open)
    writer.join(60)
    assert fifo.is_fifo()


@pytest.mark.parametrize(("name", "why"), [("gone/report.html", "there is no folder"), (".", "is a folder")])
def test_what_cannot_be_a_file_is_refused_and_nothing_is_made(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=why):
        write_file(tmp_path / name, b"x")
    assert list(tmp_path.iterdir()) == []


def test_our_own_output_gets_the_file_before_the_answer(tmp_path: Path) -> None:
    """`--html /dev/stdout > FILE`: a rename would leave the shell with a file that has no name any more."""
    program = "from pathlib import Path; from train_ledger.cli.output import *; import sys\n"
    program += "write_file(Path(sys.argv[1]), b'<html>'); show('answer')"
    for target in ("/dev/stdout", "out"):
        with (tmp_path / "out").open("w") as out:
            subprocess.run([sys.executable, "-c", program, target], stdout=out, check=True, cwd=tmp_path)
        assert (tmp_path / "out").read_text() == "<html>answer\n"
