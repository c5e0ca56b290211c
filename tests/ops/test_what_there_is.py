"""diagnose works on what is there: the answer is right, or says why it cannot be told; never a traceback."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import random
from pathlib import Path

import pytest

from ops.cascades import START_T, Ranks, iteration, put_kernel_log, put_log, timed_out, traceback
from ops.test_diagnose import gloo_entry
from train_ledger.answer import CAUSES, STATES
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.render.text import as_text
from train_ledger.render.words import verdict
from train_ledger.run_dir import RunDir

T = START_T
NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: '/data/x_doc_idx.npy'"
GONE = "NVRM: Xid (PCI:0000:06:00): 79, pid=1005, name=python, GPU has fallen off the bus."


def logs_of(folder: Path) -> None:
    """Eight ranks, of which the sixth raised before the others' watchdogs gave up."""
    text = "".join(iteration(step, T + step) for step in range(1, 101)) + traceback(5, NO_FILE)
    text += "".join(timed_out(rank, T + 703, seq=101) for rank in (0, 1, 2, 3, 4, 6, 7))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.log").write_text(text)
    os.utime(folder / "train.log", (T + 760, T + 760))


def dumps_of(folder: Path, prefix: str = "rank_") -> None:
    """Eight ranks' dumps: the sixth never came to number 7."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"": {"name": "", "desc": "", "ranks": "[]"}}
    for rank in range(8):
        entries = [gloo_entry(6, "all_reduce", done=True)]
        if rank != 5:
            entries.append(gloo_entry(7, "all_reduce", done=False))
        dump = {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}
        path = folder / f"{prefix}{rank}"
        path.write_bytes(pickle.dumps(dump, protocol=2))
        os.utime(path, (T + 170, T + 170))


def signals_of(run: RunDir) -> None:
    """Eight ranks' signals: the sixth raised at step 100, the others wait."""
    ranks = Ranks(run, 8, hosts=2)
    ranks.start()
    ranks.steps(100)
    ranks.event("exception", [5], type="FileNotFoundError", message="/data/x_doc_idx.npy")
    ranks.event("phase_start", [0, 1, 2, 3, 4, 6, 7], phase="backward")


def hardware_of(run: RunDir) -> None:
    put_kernel_log(run, "n2", [(T + 100.5, GONE)])


PARTS = {
    "logs": lambda run: logs_of(run.logs),
    "dumps": lambda run: dumps_of(run.comm_traces()),
    "signals": signals_of,
    "hardware": hardware_of,
}
SEVERAL = [pair for size in (1, 2, 3, 4) for pair in itertools.combinations(PARTS, size)]


@pytest.mark.parametrize("there", SEVERAL, ids="+".join)
def test_whatever_is_there_rank_5_or_its_gpu_is_named_and_nobody_else(
    tmp_path: Path, there: tuple[str, ...]
) -> None:
    run = RunDir(tmp_path / "r42")
    run.path.mkdir()
    for part in there:
        PARTS[part](run)
    found = diagnose(run, Config(), at=T + 800)
    assert found.cause in CAUSES
    assert found.state in STATES
    assert as_text(found)
    if there == ("hardware",):
        assert (found.cause, found.ranks, found.hosts) == ("hardware.xid", (), ("n2",))
        assert found.gpus == ("0000:06:00",)
        assert found.confidence == "low"
    else:
        assert found.ranks in ((5,), ()), found.evidence
        assert found.ranks == (5,) or (found.cause == "hardware.xid" and found.hosts == ("n2",))


def test_a_folder_of_logs_is_read_as_it_is(tmp_path: Path) -> None:
    logs_of(tmp_path / "from n2")
    found = diagnose(RunDir(tmp_path / "from n2"), Config())
    assert (found.cause, found.ranks) == ("hang.rank_died", (5,))
    assert any("(train.log:104)" in line for line in found.evidence)


@pytest.mark.parametrize("prefix", ["rank_", "nccl_trace_rank_"])
def test_a_folder_of_dumps_is_read_as_it_is(tmp_path: Path, prefix: str) -> None:
    dumps_of(tmp_path / "collected", prefix)
    found = diagnose(RunDir(tmp_path / "collected"), Config())
    assert (found.cause, found.ranks) == ("hang.rank_missing", (5,))


def test_an_empty_folder_and_one_of_other_things_cannot_be_told(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for name in ("", "readme.md", "model.bin"):
        if name:
            (tmp_path / "notes" / name).write_text("nothing of a run")
        found = diagnose(RunDir(tmp_path / "notes"), Config())
        assert (found.cause, found.ranks, found.hosts) == ("unknown", (), ())
        assert verdict(found).startswith("cannot tell, because ")


def test_a_folder_that_holds_much_else_is_no_folder_of_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs_of(tmp_path / "home")
    monkeypatch.setattr("train_ledger.ops.folders._MOST_FILES", 3)
    for number in range(3):
        (tmp_path / "home" / f"{number}.txt").write_text("x")
    assert diagnose(RunDir(tmp_path / "home"), Config()).cause == "unknown"


def test_gpus_that_are_known_to_be_another_s_accuse_nobody(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    ranks = Ranks(run, 8, hosts=2)
    ranks.start()
    ranks.steps(100)
    ranks.event("phase_start", phase="backward")
    put_kernel_log(run, "n2", [(ranks.t + 0.5, GONE.replace("06:00", "e1:00").replace("1005", "77"))])
    found = diagnose(run, Config(), at=ranks.t + 400)
    assert (found.cause, found.ranks, found.hosts) == ("unknown", (), ())


@pytest.mark.parametrize("part", ["logs", "dumps", "signals", "hardware"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_damaged_is_never_a_traceback(tmp_path: Path, part: str, seed: int) -> None:
    run = RunDir(tmp_path / "r42")
    run.path.mkdir()
    for name in PARTS:
        PARTS[name](run)
    chance = random.Random(f"{part} {seed}")
    folder = {"logs": run.logs, "dumps": run.comm_traces(), "signals": run.signals, "hardware": run.hardware}[
        part
    ]
    for path in sorted(it for it in folder.rglob("*") if it.is_file()):
        data = bytearray(path.read_bytes())
        for _ in range(20):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(bytes(data[: chance.randrange(len(data) // 2, len(data))]))
        os.utime(path, (T + 170, T + 170))
    found = diagnose(run, Config(), at=T + 800)
    assert found.cause in CAUSES
    assert set(found.ranks) <= {5}, found.evidence
    assert json.dumps(as_text(found))


def test_a_log_without_any_time_is_no_ground_for_an_order(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    put_log(run, traceback(3, "ValueError: one") + traceback(6, "KeyError: 'two'"), T, "train.log")
    found = diagnose(run, Config(), at=T + 4000)
    assert found.confidence == "low"
    assert any(line.startswith("as early, as far as their times tell: rank 6") for line in found.evidence)
