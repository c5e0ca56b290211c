"""A kernel log that a syslog daemon keeps."""

from __future__ import annotations

import json
import time
from pathlib import Path

from train_ledger.sources.hardware.kernel_file import KernelFile

T = 1_770_000_000.0


def line(t: float, code: int = 79) -> str:
    return f"{t:.6f} n7 kernel: NVRM: Xid (PCI:0000:3b:00): {code}, pid=7, name=python, gone\n"


def test_lines_come_once_and_another_reader_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(line(T) + "1770000001.0 n7 kernel: usb 1-1: new device\n" + line(T + 2, 31))
    first = KernelFile(log, since_t=0.0)
    assert [it.t for it in first.poll()] == [T, T + 2]
    assert first.poll() == []
    place = json.loads(json.dumps(first.place()))
    first.close()
    with log.open("a") as file:
        file.write(line(T + 3, 48))
    second = KernelFile(log, since_t=T + 100, place=place)
    assert [it.line("n7") for it in second.poll()] == [line(T + 3, 48).strip()]
    second.close()


def test_lines_of_long_before_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(line(T) + line(T + 700))
    reader = KernelFile(log, since_t=T + 600)
    assert [it.t for it in reader.poll()] == [T + 700]
    reader.close()


def test_times_of_other_prints_are_understood(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    now = time.time()
    iso = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now - 5))
    log.write_text(f"{iso}+00:00 n7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, gone\n")
    reader = KernelFile(log, since_t=now - 60)
    (message,) = reader.poll()
    assert abs(message.t - (now - 5)) < 2
    assert message.text == "NVRM: Xid (PCI:0000:3b:00): 79, gone"
    reader.close()


def test_lines_without_a_time_are_taken_from_the_first_look_on(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    text = "[  812.5] NVRM: Xid (PCI:0000:3b:00): 79, gone"
    log.write_text(f"{text}\n")
    reader = KernelFile(log, since_t=T)
    assert reader.poll() == []
    with log.open("a") as file:
        file.write(f"{text}\n")
    assert [it.line("n7") for it in reader.poll()] == [text]
    reader.close()


def test_a_file_that_is_not_there_is_said_and_awaited(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    reader = KernelFile(log, since_t=0.0)
    assert (reader.poll(), reader.trouble) == ([], f"{log}: there is no such file")
    log.write_text(line(T))
    assert (len(reader.poll()), reader.trouble) == (1, None)
    reader.close()


def test_a_place_that_is_damaged_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(line(T))
    place = {"by": "file", "path": str(log), "at": [{"path": 7}]}
    reader = KernelFile(log, since_t=0.0, place=place)
    assert len(reader.poll()) == 1
    reader.close()
