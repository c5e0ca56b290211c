"""A profile and a memory snapshot of a living rank, for whoever asks from outside."""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import train_ledger
from train_ledger.run_dir import RunDir
from train_ledger.signals.asking.cannot import CannotError
from train_ledger.signals.asking.profiling import Profiling, write_memory_snapshot


class Asked:
    """Who asks for a profile; `answers` are what it was told."""

    def __init__(self, path: Path, steps: object = 2) -> None:
        self.path, self.answers = path, list[Mapping[str, Any]]()
        self.profiling = Profiling()
        self.profiling.ask(steps, path, self.answers.append)

    def train(self, steps: int) -> None:
        for _ in range(steps):
            (torch.ones(8, 8) @ torch.ones(8, 8)).sum()
            self.profiling.step()


def test_the_steps_that_were_asked_for_and_no_more(tmp_path: Path) -> None:
    asked = Asked(tmp_path / "traces" / "rank_5.json.gz")
    asked.train(2)
    assert asked.answers == []
    asked.train(5)
    assert asked.answers == [{"ok": True, "path": str(asked.path), "steps": 2}]
    assert [it.name for it in asked.path.parent.iterdir()] == ["rank_5.json.gz"]
    with gzip.open(asked.path) as file:
        names = [event.get("name") for event in json.load(file)["traceEvents"]]
    assert names.count("aten::mm") + names.count("aten::matmul") >= 2
    assert names.count("aten::mm") == 2
    assert [name for name in names if str(name).startswith("ProfilerStep#")]


def test_one_at_a_time_and_then_another(tmp_path: Path) -> None:
    asked = Asked(tmp_path / "one.json.gz")
    with pytest.raises(CannotError, match="already"):
        asked.profiling.ask(1, tmp_path / "two.json.gz", asked.answers.append)
    asked.train(3)
    asked.profiling.ask(1, tmp_path / "two.json.gz", asked.answers.append)
    asked.train(2)
    assert [answer["ok"] for answer in asked.answers] == [True, True]


@pytest.mark.parametrize("steps", [0, -1, 101, "three", 2.5])
def test_a_number_of_steps_that_cannot_be(tmp_path: Path, steps: object) -> None:
    with pytest.raises(CannotError, match="from 1 to 100"):
        Asked(tmp_path / "rank_5.json.gz", steps)


def test_the_trainings_own_profiler_goes_before(tmp_path: Path) -> None:
    asked = Asked(tmp_path / "rank_5.json.gz")
    with torch.profiler.profile() as own:
        asked.train(4)
    assert [answer["ok"] for answer in asked.answers] == [False]
    assert asked.answers[0]["error"] == "the training profiles itself just now"
    assert sum(event.name == "aten::mm" for event in own.events()) == 4


def test_a_training_that_ends_before(tmp_path: Path) -> None:
    asked = Asked(tmp_path / "rank_5.json.gz", steps=50)
    asked.train(3)
    asked.profiling.close()
    assert asked.answers == [{"ok": False, "error": "the training ended before its steps were profiled"}]
    with torch.profiler.profile():  # which torch would refuse if ours still ran
        torch.ones(2)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "traces").write_text("a file")
    asked = Asked(tmp_path / "traces" / "rank_5.json.gz", steps=1)
    asked.train(2)
    assert asked.answers[0]["ok"] is False


def test_by_a_request_while_the_training_goes_on(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    monitor = train_ledger.start(tmp_path, rank=5)
    asked = {"id": "p1", "t": time.time(), "do": "profile", "ranks": [5], "steps": 2}
    run.request("p1").write_text(json.dumps(asked))
    step, deadline = 0, time.monotonic() + 120
    while not run.reply("p1", 5).exists():
        assert time.monotonic() < deadline
        torch.ones(4).sum()
        monitor.step(step := step + 1)
        time.sleep(0.01)
    answer = json.loads(run.reply("p1", 5).read_bytes())
    monitor.close()
    assert answer["ok"] is True
    assert Path(answer["path"]) == tmp_path / "traces" / "rank_5.json.gz"
    assert gzip.decompress(Path(answer["path"]).read_bytes())


def test_no_snapshot_without_cuda(tmp_path: Path) -> None:
    with pytest.raises(CannotError, match="has not initialised CUDA"):
        write_memory_snapshot(tmp_path / "rank_5.pickle")


def test_a_snapshot_is_torchs_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[int] = []
    memory = SimpleNamespace(
        _dump_snapshot=lambda name: Path(name).write_bytes(b"a pickle"),
        _record_memory_history=lambda max_entries: recorded.append(max_entries),
    )
    cuda = SimpleNamespace(is_initialized=lambda: True, memory=memory)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    path = tmp_path / "memory_snapshots" / "rank_5.pickle"
    write_memory_snapshot(path)
    assert (path.read_bytes(), recorded) == (b"a pickle", [])
    write_memory_snapshot(path, record_history=True)
    assert len(recorded) == 1


def test_from_the_step_on_that_all_ranks_were_asked_for(tmp_path: Path) -> None:
    answers: list[Mapping[str, Any]] = []
    profiling = Profiling()
    profiling.ask(2, tmp_path / "rank_5.json.gz", answers.append, first_step=13)
    for ended in range(10, 16):
        (torch.ones(8, 8) @ torch.ones(8, 8)).sum()
        profiling.step(ended)
    assert [answer["ok"] for answer in answers] == [True]
    with gzip.open(tmp_path / "rank_5.json.gz") as file:
        names = {event.get("name") for event in json.load(file)["traceEvents"]}
    assert {name for name in names if str(name).startswith("ProfilerStep#")} == {
        "ProfilerStep#13", "ProfilerStep#14",
    }  # fmt: skip


def test_what_takes_too_long_ends_with_the_steps_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from train_ledger.signals.asking import profiling as module

    asked = Asked(tmp_path / "rank_5.json.gz", steps=50)
    asked.train(3)
    now = time.monotonic() + 601
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    asked.train(1)
    assert asked.answers == [{"ok": True, "path": str(asked.path), "steps": 3}]
    late: list[Mapping[str, Any]] = []
    asked.profiling.ask(1, asked.path, late.append, first_step=10**9)
    now += 601
    asked.profiling.step(7)
    assert late == [{"ok": False, "error": "step 1000000000 did not come in 600 s"}]


def test_a_trace_that_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from train_ledger.signals.asking import profiling as module

    monkeypatch.setattr(module, "_LARGEST_BYTES", 10)
    asked = Asked(tmp_path / "traces" / "rank_5.json.gz")
    asked.train(3)
    assert "ask for fewer" in asked.answers[0]["error"]
    assert list(asked.path.parent.iterdir()) == []
    monkeypatch.setattr(module, "_LEAST_FREE_BYTES", 1 << 62)
    with pytest.raises(CannotError, match="are free"):
        Asked(tmp_path / "rank_5.json.gz")


def test_nsys_is_told_where_to_begin_and_to_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from train_ledger.signals.asking import nsys

    told: list[str] = []
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        profiler=SimpleNamespace(start=lambda: told.append("start"), stop=lambda: told.append("stop")),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    answers: list[Mapping[str, Any]] = []
    profiling = Profiling()
    with pytest.raises(CannotError, match="does not run under nsys"):
        profiling.ask(1, tmp_path / "unused", answers.append, by_nsys=True)
    monkeypatch.setenv(nsys.REPORT, "/runs/nsys/rank_5.nsys-rep")
    monkeypatch.setattr(nsys._Range, "_taken", False)
    profiling.ask(2, tmp_path / "unused", answers.append, by_nsys=True)
    for ended in (1, 2):
        profiling.step(ended)
    assert told == ["start"]
    profiling.step(3)
    assert told == ["start", "stop"]
    assert answers == [{"ok": True, "path": "/runs/nsys/rank_5.nsys-rep", "steps": 2}]
    with pytest.raises(CannotError, match="has captured its range"):
        profiling.ask(1, tmp_path / "unused", answers.append, by_nsys=True)
