"""What a keeper holds does not grow with the run: its second half adds nothing to speak of."""

from __future__ import annotations

import gc
import json
import os
import tracemalloc
from pathlib import Path

import pytest

from dash.page.views import diagnosis
from train_ledger.config import Config, Respond
from train_ledger.dash.page.parts import parts
from train_ledger.run_dir import RunDir
from train_ledger.watch import Keeper
from train_ledger.watch.clock import RunClock
from train_ledger.watch.console import Console
from train_ledger.watch.respond import Collected, FirstAnswers
from train_ledger.watch.view import view
from waiting import wait_until

pytestmark = pytest.mark.slow

RANKS = 8
STEP_S = 2.0
A_NIGHT = 800
"""Steps of each rank up to a hang of two minutes."""
NIGHTS = 30
MOST_GROWN_BYTES = 600_000
"""In the second half, of 96,000 lines: not the half of one figure of each.

What waits to be compared comes and goes by a third of that.
"""

LINE = (
    '{"t":%.2f,"step":%d,"rank":%d,"attempt":0,"loss":%.4f,"grad_norm":1.01,"step_time_s":%.2f,'
    '"compute_s":1.5,"consumed_samples":%d}\n'
)


class Run:
    """A run in simulated time, told to a keeper whose clock it moves."""

    def __init__(self, path: Path) -> None:
        self.dir = RunDir(path)
        self.dir.signals.mkdir(parents=True)
        self.dir.run_json.write_text(json.dumps({"run": "r42", "world_size": RANKS}))
        self.t = self._last_t = 1_790_000_000.0
        self._step = 0
        for rank in range(RANKS):
            start = {"t": self.t, "rank": rank, "event": "run_start", "world_size": RANKS, "host": "n0"}
            self._tell(rank, json.dumps(start) + "\n")
        config = Config(respond=Respond(on_page=("diagnose",)))
        clock = RunClock(lambda: self.t)
        self.keeper = Keeper(self.dir, config, Console(lambda _: None), clock, self._answer)

    def _answer(self, *_: object) -> FirstAnswers:
        return FirstAnswers(Collected((), (), {}, 0.0), diagnosis(RANKS, self._step // A_NIGHT % RANKS))

    def _tell(self, rank: int, text: str) -> None:
        with self.dir.signals_of(rank).open("a") as file:
            file.write(text)

    def train(self, steps: int) -> None:
        """Steps of all ranks; the first of them took as long as was stood still before."""
        first_s = self.t - self._last_t + STEP_S
        for rank in range(RANKS):
            self._tell(rank, "".join(self._line(rank, place, first_s) for place in range(steps)))
        self._step += steps
        self.t += STEP_S * steps
        self._last_t = self.t
        self.keeper.turn()

    def _line(self, rank: int, place: int, first_s: float) -> str:
        t, step = self.t + STEP_S * (place + 1), self._step + place + 1
        return LINE % (t, step, rank, 2 + 1 / step, STEP_S if place else first_s, 8 * step)

    def hang(self) -> None:
        """Two minutes without a step, until the keeper has told of them."""
        for _ in range(3):
            self.t += 40.0
            self.keeper.turn()
        wait_until(self._is_told, 60.0, "for the verdict")
        parts(view(self.keeper))

    def _is_told(self) -> bool:
        self.keeper.turn()
        return self.keeper.is_told

    def night(self) -> None:
        for _ in range(4):
            self.train(A_NIGHT // 4)
        parts(view(self.keeper))
        self.hang()

    def kinds(self) -> list[str]:
        return [json.loads(line)["kind"] for line in self.dir.journal.read_text().splitlines()]


def test_what_a_keeper_holds_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # nobody pulls the plug here
    tracemalloc.start()
    run = Run(tmp_path / "r42")
    try:
        first_bytes = held_after(run, NIGHTS // 2)
        second_bytes = held_after(run, NIGHTS // 2)
    finally:
        tracemalloc.stop()
        run.keeper.close()
    print(f"{first_bytes} bytes after the first half, {second_bytes} after the second")
    assert run.kinds().count("verdict") == NIGHTS
    assert second_bytes - first_bytes < MOST_GROWN_BYTES


def held_after(run: Run, nights: int) -> int:
    """Bytes of Python objects that are still held after so many nights."""
    for _ in range(nights):
        run.night()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
