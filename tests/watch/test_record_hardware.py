"""What a recorder of one host writes, and whom it never holds up."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from train_ledger.config import Config, Hardware
from train_ledger.facts import Fault, HardwareReading
from train_ledger.run_dir import RunDir
from train_ledger.sources.hardware.cards import Look
from train_ledger.sources.hardware.hardware_files import HardwareFiles
from train_ledger.watch import node_recording, record_hardware
from train_ledger.watch.node_recording import NodeRecording
from train_ledger.watch.record_hardware import HardwareRecorder
from waiting import wait_until

TICK_S = 0.02
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python, GPU has fallen off the bus."


@pytest.fixture(autouse=True)
def _its_end_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not written before the end is written at it, however late the recorder gets to run."""
    monkeypatch.setattr(record_hardware, "_JOIN_S", 60.0)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    folder = tmp_path / "run"
    folder.mkdir()
    return RunDir(folder)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kern.log"
    path.touch()
    return path


def config(kernel_log: Path | str = "none", *, every_s: float = TICK_S, record: bool = True) -> Config:
    return Config(hardware=Hardware(record=record, every_s=every_s, kernel_log=str(kernel_log)))


def gpus(t: float) -> Look:
    values = {"DCGM_FI_DEV_GPU_TEMP": 61.0}
    found = [HardwareReading(t, "n7", gpu=n, uuid=f"GPU-{n}", by="nvml", values=values) for n in range(2)]
    return Look(found, ("DCGM_FI_PROF_SM_ACTIVE",))


def nothing(_: float) -> Look:
    return Look([], ("network ports: none",))


def line(text: str = XID, ago_s: float = 0.0) -> str:
    return f"{time.time() - ago_s:.6f} n7 kernel: {text}\n"


@contextmanager
def recording(
    run: RunDir,
    settings: Config,
    cards: Callable[[float], Look] = gpus,
    ports: Callable[[float], Look] = nothing,
) -> Iterator[HardwareRecorder]:
    recorder = HardwareRecorder(
        run, settings, host="n7", look_at_cards=cards, look_at_ports=ports, tick_s=TICK_S
    )
    recorder.start()
    try:
        yield recorder
    finally:
        recorder.close()


def wait_for(condition: Callable[[], bool]) -> None:
    wait_until(condition, 60.0)


def lines(run: RunDir) -> list[dict[str, Any]]:
    file = run.hardware / "n7.jsonl"
    return [json.loads(it) for it in file.read_text().splitlines()] if file.exists() else []


def kernel(run: RunDir) -> str:
    file = run.hardware / "n7.kern.log"
    return file.read_text() if file.exists() else ""


def test_what_is_recorded_is_what_is_read(run: RunDir, log: Path) -> None:
    log.write_text(line(ago_s=60))
    with recording(run, config(log)):
        wait_for(lambda: "Xid" in kernel(run) and len(lines(run)) >= 3)
    files = HardwareFiles(run, ["n7"])
    found = files.poll()
    assert {(it.gpu, it.uuid) for it in found if isinstance(it, HardwareReading)} == {
        (0, "GPU-0"), (1, "GPU-1"), (None, None),
    }  # fmt: skip
    (fault,) = (it for it in found if isinstance(it, Fault))
    assert (fault.host, fault.details["code"], files.bad_lines) == ("n7", 79, {})
    files.close()


def test_what_is_not_observed_is_written_once_and_told_once(run: RunDir) -> None:
    with recording(run, config()) as recorder:
        wait_for(lambda: len(lines(run)) > 10)
        remarks = recorder.remarks()
    said = [it for it in lines(run) if "not_observed" in it]
    assert len(said) == 1
    assert sorted(said[0]["not_observed"]) == [
        "DCGM_FI_PROF_SM_ACTIVE",
        "kernel log: switched off by kernel_log in [hardware]",
        "network ports: none",
    ]
    assert (said[0]["host"], said[0]["by"], "gpu" in said[0]) == ("n7", "recorder", False)
    assert len(remarks) == 1
    assert "DCGM_FI_PROF_SM_ACTIVE" in remarks[0]


def test_a_machine_with_nothing_has_one_line(run: RunDir) -> None:
    looks = []

    def none(t: float) -> Look:
        looks.append(t)
        return Look([], ("GPUs: no driver",))

    with recording(run, config(), none):
        wait_for(lambda: len(lines(run)) == 1)
        time.sleep(10 * TICK_S)
    assert (len(lines(run)), len(looks)) == (1, 1)  # and it is not asked all the time


def test_a_log_that_tells_nothing_is_there_and_empty(run: RunDir, log: Path) -> None:
    with recording(run, config(log)):
        wait_for((run.hardware / "n7.kern.log").exists)
    assert kernel(run) == ""


def test_no_card_that_hangs_holds_up_the_others_or_the_end(
    run: RunDir, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_hardware, "_SILENT_S", 0.1)
    monkeypatch.setattr(record_hardware, "_FIRST_LOOK_S", 0.1)
    monkeypatch.setattr(record_hardware, "_JOIN_S", 0.3)
    release = threading.Event()

    def hangs(t: float) -> Look:
        release.wait(300)
        return gpus(t)

    def port(t: float) -> Look:
        return Look([HardwareReading(t, "n7", device="mlx5_0", port=1, by="sysfs")])

    with recording(run, config(log), hangs, port):
        log.write_text(line())
        wait_for(lambda: "Xid" in kernel(run))
        wait_for(lambda: any("GPUs: no answer for 0 s" in str(it) for it in lines(run)))
        wait_for(lambda: any(it.get("device") == "mlx5_0" for it in lines(run)))
    assert not release.is_set(), "who hangs was not waited for"
    release.set()


def test_lines_of_a_while_before_are_seen_and_older_ones_are_not(run: RunDir, log: Path) -> None:
    log.write_text(line(ago_s=3000) + line(XID.replace("79", "48"), ago_s=300))
    with recording(run, config(log)):
        wait_for(lambda: "): 48" in kernel(run))
    assert "): 79" not in kernel(run)


def test_lines_of_before_the_run_are_not_its(run: RunDir, log: Path) -> None:
    run.merge_run({"run": "r", "started": time.time() - 100})
    log.write_text(line(ago_s=300) + line(XID.replace("79", "48"), ago_s=50))
    with recording(run, config(log)):
        wait_for(lambda: "): 48" in kernel(run))
    assert "): 79" not in kernel(run)


def test_a_recorder_that_is_started_anew_writes_no_line_twice_and_loses_none(run: RunDir, log: Path) -> None:
    log.write_text(line(ago_s=5))
    with recording(run, config(log)):
        wait_for(lambda: kernel(run).count("Xid") == 1)
    with log.open("a") as file:
        file.write(line(XID.replace("79", "48")))
    with recording(run, config(log)):
        wait_for(lambda: kernel(run).count("Xid") == 2)
        time.sleep(5 * TICK_S)
    assert [("): 79" in it, "): 48" in it) for it in kernel(run).splitlines()] == [
        (True, False),
        (False, True),
    ]


def test_two_recorders_of_a_host_are_one(run: RunDir, log: Path) -> None:
    said: list[str] = []
    with recording(run, config(log)) as first, recording(run, config(log)) as second:
        log.write_text(line())
        wait_for(lambda: "Xid" in kernel(run))
        wait_for(lambda: "another process" in str(said.extend(first.remarks() + second.remarks()) or said))
        time.sleep(5 * TICK_S)
        assert kernel(run).count("Xid") == 1
    assert said.count("another process records the hardware of n7 already") == 1


def test_the_second_goes_on_when_the_first_has_ended(run: RunDir, log: Path) -> None:
    with recording(run, config(log)) as first:
        log.write_text(line())
        wait_for(lambda: "Xid" in kernel(run))
        with recording(run, config(log)):
            first.close()
            with log.open("a") as file:
                file.write(line())
            wait_for(lambda: kernel(run).count("Xid") == 2)


def test_a_burst_is_bounded_and_its_number_survives_the_end(run: RunDir, log: Path) -> None:
    with recording(run, config(log)):
        log.write_text("".join(line() for _ in range(1000)))
        wait_for(lambda: "Xid" in kernel(run))
    assert len(kernel(run).splitlines()) == 4
    files = HardwareFiles(run)
    faults = [it for it in files.poll() if isinstance(it, Fault)]
    assert sum(int(it.details.get("times", 1)) for it in faults) == 1000
    files.close()


def test_where_nothing_can_be_written_it_is_said_once_and_nobody_is_hurt(run: RunDir, log: Path) -> None:
    run.hardware.write_text("a file in the folder's place")
    with recording(run, config(log)) as recorder:
        remarks: list[str] = []
        wait_for(lambda: bool(remarks.extend(recorder.remarks()) or remarks))
        time.sleep(10 * TICK_S)
        remarks += recorder.remarks()
    assert remarks == [f"{run.hardware}: File exists; the hardware of this host is not recorded"]


def test_kernel_lines_wait_for_a_disk_that_is_full(
    run: RunDir, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = True
    write = os.write

    def written(fd: int, data: bytes) -> int:
        if full and b"Xid" in data:
            raise OSError(28, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr(os, "write", written)
    with recording(run, config(log)) as recorder:
        log.write_text(line())
        remarks: list[str] = []
        wait_for(lambda: "No space left" in str(remarks.extend(recorder.remarks()) or remarks))
        full = False
        wait_for(lambda: kernel(run).count("Xid") == 1)


def test_a_recorder_that_never_began_ends_at_once(run: RunDir) -> None:
    recorder = HardwareRecorder(run, config(), host="n7")
    recorder.close()
    assert not run.hardware.exists()


def test_a_keeper_records_a_node_of_the_run_alone(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_recording, "has_gpus", lambda: False)
    told: list[str] = []
    node = NodeRecording(run, config(), told.append)
    node.attend({"another-node", None})
    assert not run.hardware.exists()
    node.attend({socket.gethostname()})
    wait_for(run.hardware.exists)
    wait_for(lambda: bool(node.attend(()) or told))
    node.close()
    assert told[0].startswith(f"not observed of the hardware of {socket.gethostname()}: ")


def test_a_keeper_records_a_node_with_gpus(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_recording, "has_gpus", lambda: True)
    for record in (False, True):
        node = NodeRecording(run, config(record=record), print)
        node.attend(())
        if record:
            wait_for(run.hardware.exists)
        node.close()
        assert run.hardware.exists() == record
