"""The kernel's records, by a socket that gives one a read as /dev/kmsg does."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from train_ledger.sources.hardware.kmsg import Kmsg

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python, GPU has fallen off the bus."


class Kernel:
    """Writes records as the kernel would; its clock counts from boot."""

    def __init__(self) -> None:
        self.end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.fd = other.detach()
        os.set_blocking(self.fd, False)
        self.number = 0

    def write(self, text: str = XID, *, ago_s: float = 0.0, priority: int = 4) -> None:
        self.number += 1
        since_boot_us = int((time.monotonic() - ago_s) * 1e6)
        record = (
            f"{priority},{self.number},{since_boot_us},-;{text}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n"
        )
        self.end.send(record.encode())


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    it = Kernel()
    yield it
    it.end.close()


def test_only_what_matters_is_told_with_its_time(kernel: Kernel) -> None:
    kernel.write(ago_s=30)
    kernel.write("usb 1-1: new high-speed USB device", ago_s=20)
    kernel.write("Out of memory: Killed process 41 (python) total-vm:1kB", ago_s=10)
    kmsg = Kmsg(kernel.fd, since_t=0.0)
    first, second = kmsg.poll()
    assert (first.text, round(time.time() - first.t), round(time.time() - second.t)) == (XID, 30, 10)
    assert first.line("n7") == f"{first.t:.6f} n7 kernel: {XID}"
    kmsg.close()


def test_what_another_program_wrote_there_is_not_the_kernels_word(kernel: Kernel) -> None:
    kernel.write(priority=12)
    kmsg = Kmsg(kernel.fd, since_t=0.0)
    assert kmsg.poll() == []
    kmsg.close()


def test_lines_of_long_before_are_left_out(kernel: Kernel) -> None:
    kernel.write(ago_s=700)
    kernel.write(ago_s=300)
    kmsg = Kmsg(kernel.fd, since_t=time.time() - 600)
    assert [round(time.time() - it.t) for it in kmsg.poll()] == [300]
    kmsg.close()


def test_another_reader_goes_on_where_this_one_stopped(kernel: Kernel) -> None:
    kernel.write(ago_s=3000)
    first = Kmsg(kernel.fd, since_t=0.0)
    assert len(first.poll()) == 1
    place = first.place()
    again = Kernel()
    for ago_s in (3000, 2000):
        again.write(ago_s=ago_s)
    second = Kmsg(again.fd, since_t=time.time() - 600, place=place)
    assert [round(time.time() - it.t) for it in second.poll()] == [2000]
    first.close()
    second.close()
    again.end.close()


def test_the_place_of_another_boot_says_nothing(kernel: Kernel) -> None:
    kernel.write(ago_s=5)
    place = {"by": "/dev/kmsg", "boot_id": "of-another-boot", "number": 900}
    kmsg = Kmsg(kernel.fd, since_t=time.time() - 600, place=place)
    assert len(kmsg.poll()) == 1
    kmsg.close()


def test_overwritten_records_are_counted_and_reading_goes_on(kernel: Kernel) -> None:
    kernel.write()
    reads = iter([BrokenPipeError, None])

    def read(fd: int, length: int) -> bytes:
        error = next(reads, None)
        if error is not None:
            raise error
        return os.read(fd, length)

    kmsg = Kmsg(kernel.fd, since_t=0.0, read=read)
    assert (len(kmsg.poll()), kmsg.overrun) == (1, 1)
    assert "overwritten" in (kmsg.trouble or "")
    kmsg.close()


def test_a_kernels_clock_that_drifted_is_corrected_and_said(kernel: Kernel) -> None:
    kmsg = Kmsg(kernel.fd, since_t=0.0)
    assert kmsg.poll() == []
    looked_t = time.time()
    kernel.write(ago_s=40)  # it was not there a moment ago
    (message,) = kmsg.poll()
    assert looked_t - 1 <= message.t <= time.time()
    assert "40 s behind" in (kmsg.trouble or "")
    kmsg.close()


def test_what_is_no_record_is_passed_over(kernel: Kernel) -> None:
    kernel.end.send(b"Xid (PCI:0000:3b:00): 79 without a front\n")
    kernel.end.send(b"4,1;Xid")
    kernel.end.send(b"\xff\xfe\n")
    kernel.write()
    kmsg = Kmsg(kernel.fd, since_t=0.0)
    assert [it.text for it in kmsg.poll()] == [XID]
    kmsg.close()


def test_only_the_kernels_own_device_is_opened(tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text("4,1,1,-;NVRM: Xid (PCI:0000:3b:00): 79\n")
    with pytest.raises(OSError, match="not the kernel's log"):
        Kmsg.opened(since_t=0.0, path=tmp_path / "kmsg")
    with pytest.raises(FileNotFoundError):
        Kmsg.opened(since_t=0.0, path=tmp_path / "none")


def test_this_machines_log_can_be_read_where_that_is_allowed() -> None:
    if not os.access("/dev/kmsg", os.R_OK) or os.geteuid() != 0:
        pytest.skip("the kernel's log may not be read here")
    kmsg = Kmsg.opened(since_t=0.0)
    kmsg.poll()
    assert kmsg.place()["number"] >= 0
    kmsg.close()
