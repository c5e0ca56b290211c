"""Of each rank a stretch of its signals."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from train_ledger.facts import Event, Step
from train_ledger.ops.postmortem.stretch import Window, signals_in
from train_ledger.run_dir import RunDir

T = 1_800_000_000.0
STEPS = 50_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Two ranks with two seconds a step for a day, a save in every hundredth."""
    run = RunDir(tmp_path_factory.mktemp("run"))
    run.signals.mkdir()
    for rank in (0, 1):
        who = {"rank": rank, "host": f"node{rank}"}
        lines = [json.dumps({"t": T, "event": "run_start", "world_size": 2, **who})]
        for step in range(1, STEPS + 1):
            lines.append(json.dumps({"t": T + 2 * step, "step": step, "rank": rank}))
            if step % 100 == 0:
                saved = {
                    "event": "ckpt_saved",
                    "step": step,
                    "rank": rank,
                    "duration_s": 1.0,
                    "durable": True,
                }
                lines.append(json.dumps({"t": T + 2 * step + 1, **saved}))
        run.signals_of(rank).write_text("\n".join(lines) + "\n")
    return run


def test_all_events_of_the_stretch_and_few_steps_of_those_who_are_not_asked_about(run: RunDir) -> None:
    middle = T + STEPS
    read = signals_in(run, Window(middle - 900, middle + 900, middle, (1,)))
    events = [it for it in read.facts if isinstance(it.fact, Event) and it.fact.name == "ckpt_saved"]
    inside = {it.fact.step for it in events if it.t is not None and abs(it.t - middle) < 900}
    assert inside == set(range(24_600, 25_401, 100)) & inside
    assert len(inside) == 9
    steps = {
        rank: sum(isinstance(it.fact, Step) and it.fact.rank == rank for it in read.facts) for rank in (0, 1)
    }
    assert steps[0] < 50 < 900 < steps[1] < STEPS / 5
    assert read.hosts == {0: "node0", 1: "node1"}


def test_a_file_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.signals.mkdir()
    os.symlink("nowhere", run.signals_of(0))
    assert signals_in(run, Window(T, T + 9, T)).not_read == (
        "signals of 1 ranks: their files cannot be read",
    )


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff\n", b'{"t": 1', b'{"event": 5}\n{"t": "NaN", "step": 1}\n']
)
def test_no_content_stops_the_reading(tmp_path: Path, content: bytes) -> None:
    run = RunDir(tmp_path)
    run.signals.mkdir()
    run.signals_of(0).write_bytes(content)
    assert signals_in(run, Window(T, T + 9, T)).not_read == ()
