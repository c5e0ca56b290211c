"""An exporter that was started anew, beside one that never was."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dash.test_exposition import parsed
from train_ledger.config import Config
from train_ledger.dash import exporter as exporter_module
from train_ledger.dash.exporter import Exporter
from train_ledger.run_dir import RunDir

BEGAN_T = 1_800_000_000.0
RANKS = 3
EXAMPLES = int(os.environ.get("FOLLOW_EXAMPLES", "40"))


def story(rank: int, chance: random.Random) -> bytes:
    """All lines of one rank: two attempts, a NaN here and there, saves that succeed or fail, bad lines."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines_of(rank, chance))


def lines_of(rank: int, chance: random.Random) -> Iterator[Any]:
    t = BEGAN_T + rank
    for attempt in (0, 1):
        first = 20 * attempt
        start = {"event": "run_start", "world_size": RANKS, "host": f"node{rank // 2}", "pid": 7}
        yield {"t": t, "rank": rank, "step": first, "attempt": attempt, **start}
        for step in range(first + 1, first + 40):
            t += chance.uniform(0.5, 1.5)
            loss = "NaN" if chance.random() < 0.1 else 2.0
            own = {"loss": loss, "skipped": step // 7, "step_time_s": 1.0}
            yield {"t": t, "step": step, "rank": rank, "attempt": attempt, **own}
            if step % 13 == 0:
                name = chance.choice(["ckpt_saved", "ckpt_failed"])
                yield {"t": t, "event": name, "step": step, "rank": rank, "attempt": attempt, "error": "full"}
            if chance.random() < 0.05:
                yield [1, 2]
        t += 60


def shown(exporter: Exporter) -> dict[Any, float]:
    while not exporter.poll():
        pass
    changing = ("train_exporter_clock_seconds", "train_exporter_poll_age_seconds")
    text = exporter.metrics() or ""
    return {key: repr(value) for key, value in parsed(text).items() if key[0] not in changing}


def write(run: RunDir, stories: list[bytes], cut: float, before: float) -> None:
    for rank, whole in enumerate(stories):
        with run.signals_of(rank).open("ab") as file:
            file.write(whole[int(before * len(whole)) : int(cut * len(whole))])


@given(seed=st.integers(0, 1000), cuts=st.lists(st.floats(0, 1), min_size=1, max_size=5))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_exporter_that_is_started_anew_shows_what_one_shows_that_never_was(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    run, memory = RunDir(folder / "r42"), folder / "state" / "r42.memory"
    run.signals.mkdir(parents=True)
    chance = random.Random(seed)
    stories = [story(rank, chance) for rank in range(RANKS)]

    def started() -> Exporter:
        return Exporter(run, Config(), clock=lambda: BEGAN_T + 200, memory=memory)

    steady = Exporter(run, Config(), clock=lambda: BEGAN_T + 200)
    for before, cut in pairwise([0.0, *sorted(cuts), 1.0]):
        write(run, stories, cut, before)
        anew = started()
        assert shown(anew) == shown(steady)
        assert anew.remarks() == []
        anew.keep()
        anew.close()
    steady.close()


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "r42")
    run.signals.mkdir(parents=True)
    chance = random.Random(1)
    write(run, [story(rank, chance) for rank in range(RANKS)], 1.0, 0.0)
    return run


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "memory"


def kept(run: RunDir, memory: Path) -> None:
    exporter = Exporter(run, Config(), memory=memory)
    exporter.poll()
    exporter.keep()
    exporter.close()


def value(exporter: Exporter, name: str, **labels: str) -> float:
    while not exporter.poll():
        pass
    key = tuple(sorted({"run": "r42", **labels}.items()))
    return parsed(exporter.metrics() or "")[name, key]


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda content: content[:-1], "is damaged"),
        (lambda content: content[:100], "is damaged"),
        (lambda content: b"", "is damaged"),
        (lambda content: b"\x80" * 4000, "is damaged"),
        (lambda content: content.replace(b"loss", b"lass"), "is damaged"),
    ],
)
def test_a_damaged_memory_is_not_used_and_that_is_said(
    run: RunDir, memory: Path, damage: Any, why: str
) -> None:
    kept(run, memory)
    memory.write_bytes(damage(memory.read_bytes()))
    exporter = Exporter(run, Config(), memory=memory)
    (remark,) = exporter.remarks()
    assert remark.startswith(f"{memory}: {why}")
    assert value(exporter, "train_step", rank="0") == 59


def test_what_other_code_kept_is_not_used(run: RunDir, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(run, memory)
    monkeypatch.setattr("train_ledger.ledger.memory.code_version", lambda: "9.9")
    exporter = Exporter(run, Config(), memory=memory)
    assert "another version of train-ledger" in exporter.remarks()[0]
    assert value(exporter, "train_step", rank="0") == 59


def test_the_memory_of_a_run_that_was_made_anew_is_not_used(run: RunDir, memory: Path) -> None:
    kept(run, memory)
    for path in run.signals.iterdir():
        path.unlink()
    run.signals_of(0).write_text('{"t": 1800000000, "step": 1, "rank": 0}\n')
    exporter = Exporter(run, Config(), memory=memory)
    assert "other files" in exporter.remarks()[0]
    assert value(exporter, "train_step", rank="0") == 1
    assert value(exporter, "train_restart_total") == 0


def test_what_was_kept_for_other_hosts_is_not_used(run: RunDir, memory: Path) -> None:
    kept(run, memory)
    exporter = Exporter(run, Config(), hosts=["node1"], memory=memory)
    assert "of other hosts" in exporter.remarks()[0]


def test_files_that_were_rotated_meanwhile_are_gone_on_with_under_their_new_names(
    run: RunDir, memory: Path
) -> None:
    kept(run, memory)
    path = run.signals_of(0)
    last = '{"t": 1800000200, "step": %d, "rank": 0, "attempt": 1, "loss": "NaN"}\n'
    with path.open("a") as file:
        file.write(last % 60)
    path.rename(f"{path}.1")
    path.write_text(last % 61)
    anew, whole = Exporter(run, Config(), memory=memory), Exporter(run, Config())
    for name in ("train_step", "train_loss_nonfinite_total"):
        assert value(anew, name, rank="0") == value(whole, name, rank="0")


def test_a_memory_that_cannot_be_written_is_said_once(run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    exporter = Exporter(run, Config(), memory=tmp_path / "file" / "memory")
    (first,) = exporter.remarks()
    assert "Not a directory" in first or "cannot be" in first
    exporter.poll()
    exporter.keep()
    exporter.close()
    (second,) = exporter.remarks()
    assert "cannot be written" in second


def test_a_large_backlog_is_read_before_anything_is_served(run: RunDir, memory: Path) -> None:
    kept(run, memory)
    for rank in range(RANKS):
        with run.signals_of(rank).open("a") as file:
            for step in range(60, 9060):
                line = {
                    "t": BEGAN_T + 100 + step,
                    "step": step,
                    "rank": rank,
                    "attempt": 1,
                    "note": "x" * 1000,
                }
                file.write(json.dumps(line) + "\n")
    exporter = Exporter(run, Config(), memory=memory)
    assert not exporter.poll()
    assert exporter.metrics() is None
    assert value(exporter, "train_step", rank="1") == 9059
    assert value(exporter, "train_exporter_history_skipped_bytes") == 0


class TestLargeFiles:
    @pytest.fixture
    def exporter(self, run: RunDir, memory: Path, monkeypatch: pytest.MonkeyPatch) -> Exporter:
        monkeypatch.setattr(exporter_module, "_WHOLE_BYTES", 100_000)
        for rank in range(RANKS):
            with run.signals_of(rank).open("a") as file:
                for step in range(60, 6000):
                    line = {"t": BEGAN_T + 100 + step, "step": step, "rank": rank, "attempt": 1, "loss": 2.0}
                    file.write(json.dumps(line) + "\n")
        return Exporter(run, Config(), clock=lambda: BEGAN_T + 6100, memory=memory)

    def test_they_are_read_at_their_ends_and_that_is_said(self, exporter: Exporter, run: RunDir) -> None:
        assert value(exporter, "train_step", rank="2") == 5999
        assert value(exporter, "train_step_time_seconds_p50") == 1.0
        assert value(exporter, "train_restart_total") == 1
        total = sum(path.stat().st_size for path in run.signals.iterdir())
        assert total - 110_000 < value(exporter, "train_exporter_history_skipped_bytes") < total
        (remark,) = exporter.remarks()
        assert "earlier lines were never read: counters count from behind them" in remark

    def test_nothing_is_served_meanwhile(self, exporter: Exporter) -> None:
        assert not exporter.poll(), "the first lines alone are no state to serve"
        assert exporter.metrics() is None

    def test_the_next_exporter_goes_on_from_there(
        self, exporter: Exporter, run: RunDir, memory: Path
    ) -> None:
        before = shown(exporter)
        exporter.keep()
        exporter.close()
        again = Exporter(run, Config(), clock=lambda: BEGAN_T + 6100, memory=memory)
        assert shown(again) == before
        assert len(again.remarks()) == 1, "that the history is not whole holds for it, too"


def test_what_was_kept_before_run_json_was_written_is_gone_on_with(run: RunDir, memory: Path) -> None:
    kept(run, memory)
    run.merge_run({"run": "r42", "started": 1.0})
    exporter = Exporter(run, Config(), memory=memory)
    assert exporter.remarks() == []
    exporter.keep()
    run.merge_run({"started": 2.0})
    kept(run, memory)
    run.merge_run({"started": 3.0})
    assert "of another run" in Exporter(run, Config(), memory=memory).remarks()[0]
