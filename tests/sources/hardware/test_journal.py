"""journalctl as a process of our own, here a script that speaks as it does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest

from train_ledger.sources.hardware.journal import Journal
from train_ledger.sources.hardware.kernel_message import KernelMessage

XID = "NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python, MMU Fault"


def speaks(tmp_path: Path, body: str) -> list[str]:
    script = tmp_path / "journalctl.py"
    script.write_text(f"import sys, time\n{body}\n")
    return [sys.executable, str(script)]


def heard(journal: Journal, number: int) -> list[KernelMessage]:
    messages: list[KernelMessage] = []
    until_s = time.monotonic() + 60
    while len(messages) < number and time.monotonic() < until_s:
        messages += journal.poll()
        time.sleep(0.02)
    return messages


def ended(journal: Journal) -> str:
    until_s = time.monotonic() + 60
    while journal.trouble is None and time.monotonic() < until_s:
        journal.poll()
        time.sleep(0.02)
    return journal.trouble or ""


LINES = f"""
print("-- Boot 5c1f0a52 --")
print("1770000000.500000 n7 kernel: {XID}")
print("1770000001.250000 n7 kernel: usb 1-1: new device")
print("1770000002.000000 n7 kernel: {XID}", flush=True)
time.sleep(600)
"""


def test_lines_that_matter_are_told_with_the_journals_times(tmp_path: Path) -> None:
    journal = Journal(since_t=0.0, command=speaks(tmp_path, LINES))
    assert heard(journal, 2) == [KernelMessage(1_770_000_000.5, XID), KernelMessage(1_770_000_002.0, XID)]
    assert journal.place() == {"by": "journalctl", "t": 1_770_000_002.0}
    journal.close()


def test_another_reader_is_not_told_the_same_lines_again(tmp_path: Path) -> None:
    place = {"by": "journalctl", "t": 1_770_000_000.5}
    journal = Journal(since_t=0.0, place=place, command=speaks(tmp_path, LINES))
    assert [it.t for it in heard(journal, 1)] == [1_770_000_002.0]
    journal.close()


def test_the_journal_is_asked_from_where_the_other_stopped(tmp_path: Path) -> None:
    command = speaks(tmp_path, "print(sys.argv[1], file=sys.stderr); sys.exit(1)")
    journal = Journal(since_t=5.0, place={"by": "journalctl", "t": 1_770_000_000.5}, command=command)
    assert "--since=@1770000000.500000" in ended(journal)
    journal.close()


def test_a_line_in_two_pieces_is_one(tmp_path: Path) -> None:
    body = f"""
print("1770000000.500000 n7 kernel: {XID[:20]}", end="", flush=True)
time.sleep(0.3)
print("{XID[20:]}", flush=True)
time.sleep(600)
"""
    journal = Journal(since_t=0.0, command=speaks(tmp_path, body))
    assert [it.text for it in heard(journal, 1)] == [XID]
    journal.close()


def test_without_permission_it_is_said_why(tmp_path: Path) -> None:
    body = (
        "print('No journal files were opened due to insufficient permissions.', file=sys.stderr); sys.exit(1)"
    )
    journal = Journal(since_t=0.0, command=speaks(tmp_path, body))
    until_s = time.monotonic() + 60
    while "ended with 1" not in ended(journal) and time.monotonic() < until_s:
        journal.poll()  # it says why a moment before it ends
        time.sleep(0.02)
    assert journal.trouble == (
        "journalctl ended with 1: No journal files were opened due to insufficient permissions."
    )
    assert journal.poll() == []
    journal.close()


def test_where_it_goes_on_without_the_systems_journal_it_is_said(tmp_path: Path) -> None:
    body = "print('Hint: You are currently not seeing messages of the system.', file=sys.stderr, flush=True)"
    journal = Journal(since_t=0.0, command=speaks(tmp_path, f"{body}; time.sleep(600)"))
    assert ended(journal) == "journalctl says: Hint: You are currently not seeing messages of the system."
    journal.close()


def test_it_ends_with_us(tmp_path: Path) -> None:
    journal = Journal(since_t=0.0, command=speaks(tmp_path, "time.sleep(600)"))
    assert journal._process is not None
    pid = journal._process.pid
    journal.close()
    assert not psutil.pid_exists(pid)


def test_no_journalctl_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        Journal(since_t=0.0, command=["/no/journalctl"])
