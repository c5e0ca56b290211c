"""Hardware beside the signals of a run: folded once, by whoever follows, and by whoever comes after."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from train_ledger.config import Config
from train_ledger.facts import Fault, HardwareReading
from train_ledger.ledger import Fold, Memory
from train_ledger.ops import read_state
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunFacts, read_run
from train_ledger.sources.hardware.reading_line import line_of

T = 1_770_000_000.0


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    start = {"event": "run_start", "host": "n7", "gpu": 0, "uuid": "GPU-0", "pci": "0000:3b:00", "pid": 7}
    steps = [{"t": T + n, "step": n, "rank": 0, "loss": 2.0} for n in range(1, 40)]
    append(tmp_path / "signals" / "rank_00000.jsonl", [{"t": T, "rank": 0, **start}, *steps])
    append(tmp_path / "hardware" / "n7.jsonl", [reading(T + 5)])
    append(tmp_path / "hardware" / "n7.kern.log", [xid(T + 6)])
    return RunDir(tmp_path)


def append(file: Path, lines: list[dict[str, object] | str]) -> None:
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as out:
        out.writelines(f"{it if isinstance(it, str) else json.dumps(it)}\n" for it in lines)


def reading(t: float) -> str:
    values = {"DCGM_FI_DEV_GPU_TEMP": 61.0}
    return line_of(HardwareReading(t, "n7", gpu=0, uuid="GPU-0", pci="0000:3b:00", by="nvml", values=values))


def xid(t: float, more: str = "") -> str:
    return f"{t:.6f} n7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python, gone{more}"


def counted(fold: Fold) -> int:
    return sum(it.count for gpu in fold.state(T + 60).gpus for it in gpu.xids)


def followed(files: RunFacts, fold: Fold) -> None:
    files.fold_into(fold)
    while not files.caught_up:
        files.fold_into(fold)


def test_what_was_recorded_is_folded_beside_the_signals(run: RunDir) -> None:
    files, fold = RunFacts(run, ["n7"]), Fold("r", Config())
    followed(files, fold)
    (gpu,) = fold.state(T + 60).gpus
    assert (gpu.host, gpu.gpu, gpu.ranks, gpu.seen_t) == ("n7", 0, (0,), T + 5)
    assert [(it.code, it.count, it.last_t) for it in gpu.xids] == [(79, 1, T + 6)]
    files.close()


def test_of_another_host_nothing_is_folded(run: RunDir) -> None:
    files, fold = RunFacts(run, ["n8"]), Fold("r", Config())
    followed(files, fold)
    assert fold.state(T + 60).gpus == ()
    files.close()


def test_an_exporter_that_comes_after_counts_no_xid_twice_and_misses_none(
    run: RunDir, tmp_path: Path
) -> None:
    file = tmp_path / "kept.memory"
    for restart in range(3):
        files, fold = RunFacts(run, ["n7"]), Fold("r", Config())
        memory = Memory(file, {}, ["n7"])
        goes_on, trouble = memory.begin(fold, files, whole_bytes=1 << 20, logs_whole_bytes=1 << 20)
        assert (goes_on, trouble) == (restart > 0, None)
        followed(files, fold)
        assert counted(fold) == 1 + 4 * restart
        memory.keep(fold, files)
        files.close()
        log = run.hardware / "n7.kern.log"
        append(log, [xid(T + 10 + restart)])
        os.replace(log, run.hardware / f"n7.kern.log.{3 - restart}")
        append(log, [xid(T + 11 + restart, " [train-ledger: 3 more such lines]")])


def test_where_signals_come_after_logs_the_hardware_stays_known_and_counts_once(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    append(run.logs / "train.log", [" iteration 1/ 90 | lm loss: 2.5E+00 |"])
    append(run.hardware / "n7.kern.log", [xid(T + 6)])
    append(run.hardware / "n7.jsonl", [reading(T + 5)])
    files, fold = RunFacts(run), Fold("r", Config())
    followed(files, fold)
    assert (files.by_logs, len(fold.state(T + 60).gpus)) == (True, 1)
    append(run.signals_of(0), [{"t": T + 1, "step": 1, "rank": 0, "loss": 2.0}])
    followed(files, fold)
    assert (files.by_logs, len(fold.state(T + 60).gpus)) == (False, 1)
    place = {"event": "run_start", "host": "n7", "gpu": 0, "uuid": "GPU-0", "pci": "0000:3b:00", "pid": 7}
    append(run.signals_of(1), [{"t": T, "rank": 1, **place}])
    append(run.hardware / "n7.kern.log", [xid(T + 7)])
    followed(files, fold)
    assert counted(fold) == 2
    files.close()


def test_a_run_that_is_read_whole_has_its_hardware_by_its_times(run: RunDir) -> None:
    append(run.hardware / "n7.jsonl", [reading(T + 7), "{"])
    read = read_run(run)
    assert [(type(it), it.t) for it in read.hardware] == [
        (HardwareReading, T + 5), (Fault, T + 6), (HardwareReading, T + 7),
    ]  # fmt: skip
    assert read.not_read == ("1 × not_json (hardware/n7.jsonl:3)",)
    assert not any(isinstance(it, Fault) for it in read.facts)


def test_what_cannot_be_read_is_counted_with_the_rest(run: RunDir) -> None:
    append(run.hardware / "n7.jsonl", ["{"])
    files, fold = RunFacts(run), Fold("r", Config())
    before = files.read_bytes
    followed(files, fold)
    assert files.bad_lines == {"not_json": 1}
    assert files.read_bytes - before > (run.hardware / "n7.jsonl").stat().st_size
    assert (files.lag_bytes, files.files) == (0, 1)
    files.close()


def test_what_was_known_at_a_moment_goes_by_the_clock_of_the_host(run: RunDir) -> None:
    """n8 is ten minutes ahead: what it tells of T + 606 was at T + 6 on the clock of rank 0's host."""
    ahead = 600.0
    start = {"event": "run_start", "host": "n8", "gpu": 0, "uuid": "GPU-8", "pci": "0000:3b:00", "pid": 7}
    steps = [{"t": T + ahead + n, "step": n, "rank": 1, "loss": 2.0} for n in range(1, 40)]
    append(run.signals_of(1), [{"t": T + ahead, "rank": 1, **start}, *steps])
    append(run.hardware / "n8.kern.log", [xid(T + ahead + 20).replace(" n7 ", " n8 ")])
    for at, hosts in ((T + 5.5, []), (T + 10, ["n7"]), (T + 30, ["n7", "n8"])):
        state = read_state(run, Config(), at=at)
        assert [gpu.host for gpu in state.gpus if gpu.xids] == hosts


def test_of_very_many_readings_the_last_are_read_and_it_is_said(run: RunDir) -> None:
    append(run.hardware / "n7.jsonl", [reading(T + 10 + n) for n in range(2000)])
    read = read_run(run, hardware_bytes=50_000)
    assert 100 < len(read.hardware) < 2000
    assert any(isinstance(it, Fault) for it in read.hardware)
    assert "MB of earlier readings of the hardware" in read.not_read[-1]
    assert len(read_run(run, hardware_bytes=None).hardware) == 2002
