"""Where the kernel's lines come from, and what is said where they come from nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.sources.hardware import kernel_lines
from train_ledger.sources.hardware.kernel_lines import KernelLines

XID = "1770000000.500000 n7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python, gone"


def test_a_file_that_is_named_is_read_and_a_burst_is_shortened(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(f"{XID}\n" * 50)
    lines = KernelLines(str(log), "n7", since_t=0.0)
    assert (lines.by, lines.not_observed, lines.poll()) == ("file", None, [XID] * 3)
    assert lines.rest() == [f"{XID} [train-ledger: 47 more such lines]"]
    lines.close()


def test_none_is_not_observed() -> None:
    lines = KernelLines("none", "n7", since_t=0.0)
    assert (lines.by, lines.poll(), lines.place()) == ("", [], None)
    assert lines.not_observed == "kernel log: switched off by kernel_log in [hardware]"


def test_without_any_permission_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> None:
        raise PermissionError(1, "Operation not permitted", "/dev/kmsg")

    def absent(**_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "journalctl")

    monkeypatch.setattr(kernel_lines.Kmsg, "opened", refused)
    monkeypatch.setattr(kernel_lines, "Journal", absent)
    lines = KernelLines("auto", "n7", since_t=0.0)
    assert (lines.by, lines.poll()) == ("", [])
    assert lines.not_observed == (
        "kernel log: /dev/kmsg: Operation not permitted; journalctl: No such file or directory; run with "
        "CAP_SYSLOG, as a member of the group systemd-journal or adm, or name a file by kernel_log in "
        "[hardware]"
    )


def test_trouble_is_told_once(tmp_path: Path) -> None:
    lines = KernelLines(str(tmp_path / "none.log"), "n7", since_t=0.0)
    lines.poll()
    assert lines.trouble() == f"kernel log: {tmp_path / 'none.log'}: there is no such file"
    lines.poll()
    assert lines.trouble() is None
    lines.close()


def test_it_is_read_when_it_is_sure_that_it_can_be(tmp_path: Path) -> None:
    lines = KernelLines(str(tmp_path / "kern.log"), "n7", since_t=0.0)
    for _ in range(5):
        lines.poll()
    assert not lines.is_read
    (tmp_path / "kern.log").touch()
    lines.poll()
    assert lines.is_read
    lines.close()
    assert not lines.is_read
