"""RUN/hardware as the recorders of several hosts write it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from train_ledger.facts import Fault, HardwareReading
from train_ledger.run_dir import RunDir
from train_ledger.sources.files.memory import HardwareMemory
from train_ledger.sources.hardware.hardware_files import HardwareFiles
from train_ledger.sources.hardware.reading_line import line_of

T = 1_770_000_000.0


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    (tmp_path / "hardware").mkdir()
    return RunDir(tmp_path)


def reading(t: float, host: str = "n7", gpu: int = 0) -> str:
    return line_of(HardwareReading(t, host, gpu=gpu, by="nvml", values={"DCGM_FI_DEV_GPU_TEMP": 61.0}))


def xid(t: float, code: int = 79, host: str = "n7", more: str = "") -> str:
    return f"{t:.6f} {host} kernel: NVRM: Xid (PCI:0000:3b:00): {code}, pid=7, name=python, gone{more}"


def written(run: RunDir, file: str, *lines: str) -> None:
    with (run.hardware / file).open("a") as out:
        out.writelines(f"{line}\n" for line in lines)


def told(files: HardwareFiles) -> list[tuple[str, float | None, str | None]]:
    kinds = {HardwareReading: "reading", Fault: "fault"}
    return [(kinds[type(it)], it.t, it.host) for it in files.poll()]


def test_readings_and_faults_of_all_hosts_by_their_times(run: RunDir) -> None:
    written(run, "n7.jsonl", reading(T), reading(T + 10))
    written(run, "n8.jsonl", reading(T + 5, "n8"))
    written(run, "n7.kern.log", xid(T + 7), "1770000008.0 n7 kernel: mlx5_core: link down")
    files = HardwareFiles(run)
    assert told(files) == [
        ("reading", T, "n7"), ("reading", T + 5, "n8"), ("fault", T + 7, "n7"), ("reading", T + 10, "n7"),
    ]  # fmt: skip
    assert (told(files), files.files, files.caught_up) == ([], 3, True)
    files.close()


def test_a_fault_says_where_it_stands_and_how_many_it_stands_for(run: RunDir) -> None:
    written(run, "n7.kern.log", xid(T, 95, more=" [train-ledger: 997 more such lines]"))
    files = HardwareFiles(run)
    (fault,) = files.poll()
    assert isinstance(fault, Fault)
    assert (fault.fault, fault.source) == ("xid", "hardware/n7.kern.log:1")
    assert fault.details == {
        "code": 95, "pci": "0000:3b:00", "pid": 7, "process": "python", "text": "gone", "times": 997,
    }  # fmt: skip
    files.close()


def test_only_these_hosts_by_short_or_full_name(run: RunDir) -> None:
    for host in ("n7", "n8", "n7.cluster.example"):
        written(run, f"{host}.jsonl", reading(T, host))
        written(run, f"{host}.kern.log", xid(T, host=host))
    for hosts, wanted in (
        (["n7"], {"n7", "n7.cluster.example"}),
        (["n8.cluster.example"], {"n8"}),
        (["n7.elsewhere.example"], {"n7"}),
        (None, {"n7", "n8", "n7.cluster.example"}),
    ):
        files = HardwareFiles(run, hosts)
        assert {it.host for it in files.poll()} == wanted
        files.close()


def test_the_name_of_the_file_is_the_host_of_lines_without_one(run: RunDir) -> None:
    written(run, "n9.kern.log", "[  812.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python, gone")
    files = HardwareFiles(run)
    assert [(it.host, it.t) for it in files.poll()] == [("n9", None)]
    files.close()


def test_bad_lines_are_counted_by_reason(run: RunDir) -> None:
    written(run, "n7.jsonl", "{", "[]", "", '{"t": "x"}', reading(T))
    files = HardwareFiles(run)
    assert len(files.poll()) == 1
    assert files.bad_lines == {"not_json": 1, "not_object": 1, "bad_number": 1}
    assert files.where["bad_number"] == "hardware/n7.jsonl:4"
    files.close()


def test_rotation_loses_nothing_and_tells_nothing_twice(run: RunDir) -> None:
    log = run.hardware / "n7.kern.log"
    written(run, log.name, xid(T))
    files = HardwareFiles(run)
    assert len(files.poll()) == 1
    written(run, log.name, xid(T + 1))
    os.replace(log, run.hardware / "n7.kern.log.1")
    written(run, log.name, xid(T + 2))
    assert [it.t for it in files.poll()] == [T + 1, T + 2]
    assert files.poll() == []
    files.close()


def test_rotated_files_are_read_first(run: RunDir) -> None:
    written(run, "n7.kern.log.2", xid(T))
    written(run, "n7.kern.log.1", xid(T + 1))
    written(run, "n7.kern.log", xid(T + 2))
    files = HardwareFiles(run)
    assert [it.t for it in files.poll()] == [T, T + 1, T + 2]
    files.close()


def test_another_reader_goes_on_through_a_rotation(run: RunDir) -> None:
    written(run, "n7.kern.log", xid(T))
    written(run, "n7.jsonl", reading(T), "{")
    first = HardwareFiles(run)
    assert len(first.poll()) == 2
    memory = msgspec.msgpack.decode(msgspec.msgpack.encode(first.memory()), type=HardwareMemory)
    first.close()
    written(run, "n7.kern.log", xid(T + 1))
    os.replace(run.hardware / "n7.kern.log", run.hardware / "n7.kern.log.1")
    written(run, "n7.kern.log", xid(T + 2))
    second = HardwareFiles(run)
    second.resume(memory)
    assert [it.t for it in second.poll()] == [T + 1, T + 2]
    assert second.bad_lines == {"not_json": 1}
    second.close()


def test_of_very_many_readings_the_last_are_read_and_every_fault(run: RunDir) -> None:
    written(run, "n7.jsonl", *(reading(T + n) for n in range(2000)))
    written(run, "n7.kern.log", *(xid(T + n) for n in range(2000)))
    files = HardwareFiles(run)
    files.begin_at_tail(20_000)
    found = files.poll()
    while not files.caught_up:
        found += files.poll()
    readings = [it for it in found if isinstance(it, HardwareReading)]
    assert len(found) - len(readings) == 2000
    assert 100 < len(readings) < 2000
    assert readings[-1].t == T + 1999
    assert files.left_out_bytes > 0
    files.close()


def test_a_small_poll_takes_a_part(run: RunDir) -> None:
    written(run, "n7.jsonl", *(reading(T + n) for n in range(5000)))
    files = HardwareFiles(run)
    part = files.poll(1000)
    assert (0 < len(part) < 5000, files.caught_up) == (True, False)
    while not files.caught_up:
        part += files.poll(1000)
    assert [it.t for it in part] == [T + n for n in range(5000)]
    files.close()


def test_what_else_lies_there_is_not_read(run: RunDir) -> None:
    for file in (".n7.lock", ".n7.place.json", "n7.jsonl.gz", "notes.txt", ".jsonl"):
        written(run, file, reading(T))
    (run.hardware / "n8.jsonl").mkdir()
    files = HardwareFiles(run)
    assert (files.poll(), files.bad_lines) == ([], {"not_a_file": 1})
    files.close()


def test_without_the_folder_there_is_nothing(tmp_path: Path) -> None:
    files = HardwareFiles(RunDir(tmp_path))
    assert (files.poll(), files.bad_lines, files.files) == ([], {}, 0)
    files.close()
