"""One keeper a run."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from train_ledger.ledger import KeeperHeld, KeeperLock


def test_the_second_is_told_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger" / "keeper.lock"
    with KeeperLock(path), pytest.raises(KeeperHeld) as refusal:
        KeeperLock(path).acquire()
    assert f"watch is already running for this run: pid {os.getpid()} on host " in str(refusal.value)
    assert " UTC" in str(refusal.value)


def test_it_can_be_had_again_when_given_back(tmp_path: Path) -> None:
    path = tmp_path / "keeper.lock"
    for _ in range(2):
        with KeeperLock(path):
            assert json.loads(path.read_text()).keys() == {"host", "pid", "since"}


def test_whose_folder_was_replaced_has_lost_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger" / "keeper.lock"
    lock = KeeperLock(path)
    assert not lock.is_lost
    with lock:
        assert not lock.is_lost
        path.parent.rename(tmp_path / "moved")
        assert lock.is_lost
        with KeeperLock(path) as another:
            assert (lock.is_lost, another.is_lost) == (True, False)


def test_it_goes_with_a_killed_holder(tmp_path: Path) -> None:
    path = tmp_path / "keeper.lock"
    code = (
        "import sys; from pathlib import Path; from train_ledger.ledger import KeeperLock\n"
        "KeeperLock(Path(sys.argv[1])).acquire(); print('held', flush=True); input()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(KeeperHeld, match=f"pid {holder.pid} "):
        KeeperLock(path).acquire()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with KeeperLock(path):
        pass


def test_a_disk_that_is_full_keeps_nobody_from_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes, place: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "keeper.lock"
    monkeypatch.setattr(os, "pwrite", full)
    for _ in range(2):  # it was given back, too
        with KeeperLock(path), pytest.raises(KeeperHeld, match="by whom is not readable"):
            KeeperLock(path).acquire()


@pytest.mark.parametrize("content", ["", "{}", '{"pid": 1, "host": "n", "since": 1e300}'])
def test_a_holder_that_did_not_say_who_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keeper.lock"
    with KeeperLock(path):
        path.write_text(content)
        with pytest.raises(KeeperHeld, match="already running"):
            KeeperLock(path).acquire()
