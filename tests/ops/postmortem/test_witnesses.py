"""What signals, logs and kernels say of the time of an incident, on one clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from train_ledger.config import Xid
from train_ledger.ops.postmortem.moment import Moment
from train_ledger.ops.postmortem.stretch import Window
from train_ledger.ops.postmortem.witnesses import witnesses_of
from train_ledger.run_dir import RunDir

T = 1_800_000_000.0
AHEAD_S = 300.0
WINDOW = Window(T - 900, T + 900, T, (1,))


def _line(rank: int, t: float, **said: object) -> str:
    return json.dumps({"t": t + AHEAD_S * (rank == 1), "rank": rank, "host": f"node{rank}", **said})


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """Two hosts, of which the second one's clock is five minutes ahead; both stop at T and come back."""
    run = RunDir(tmp_path)
    run.signals.mkdir()
    for rank in (0, 1):
        lines = [_line(rank, T - 201, event="run_start", world_size=2)]
        lines += [_line(rank, T - 2 * number, step=100 - number) for number in range(100, -1, -1)]
        lines.append(_line(rank, T + 300 + rank, event="run_start", world_size=2, attempt=1))
        lines.append(_line(rank, T + 400 + rank, event="ckpt_loaded", step=90, attempt=1))
        run.signals_of(rank).write_text("\n".join(lines) + "\n")
    return run


def _kernel(run: RunDir, t: float, code: int = 79) -> None:
    run.hardware.mkdir(exist_ok=True)
    with (run.hardware / "node1.kern.log").open("a") as file:
        file.write(
            f"{t + AHEAD_S:.6f} node1 kernel: NVRM: Xid (PCI:0000:3b:00): {code}, pid=1, name=python\n"
        )


def _told(run: RunDir, window: Window = WINDOW, levels: Xid | None = None) -> list[Moment]:
    return list(witnesses_of(run, window, levels or Xid()).moments)


def test_what_both_ranks_do_is_one_line_by_the_last_of_them(run: RunDir) -> None:
    (start, again, loaded) = (it for it in _told(run) if "start" in it.text or "loaded" in it.text)
    assert start.text == "started on 2 ranks, rank 1 last (attempt 0)"
    assert again.text == "started on 2 ranks, rank 1 last (attempt 1)"
    assert (loaded.text, loaded.source) == (
        "checkpoint loaded on 2 ranks, rank 1 last (attempt 1, step 90)",
        "signals/rank_00001.jsonl:104",
    )


def test_a_clock_that_is_ahead_is_set_right_and_told(run: RunDir) -> None:
    _kernel(run, T - 30)
    (xid,) = (it for it in _told(run) if it.xid is not None)
    assert xid.t == pytest.approx(T - 30, abs=0.1)
    assert xid.clock == "clock of node1, 300.0 s ahead, taken off"
    assert (xid.host, xid.xid, xid.pages, xid.source) == ("node1", 79, True, "hardware/node1.kern.log:1")


def test_a_host_of_which_nothing_else_is_known_is_compared_with_no_other(run: RunDir) -> None:
    run.hardware.mkdir()
    told = f"{T - 30:.6f} node9 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python\n"
    (run.hardware / "node9.kern.log").write_text(told)
    (xid,) = (it for it in _told(run) if it.xid is not None)
    assert xid.clock == "clock of node9, compared with no other"


def test_one_xid_in_many_lines_is_one_line(run: RunDir) -> None:
    for number in range(5):
        _kernel(run, T - 30 + number)
    (xid,) = (it for it in _told(run) if it.xid is not None)
    assert xid.text.endswith(", 5 lines")


def test_the_levels_that_the_user_set_hold(run: RunDir) -> None:
    _kernel(run, T - 30)
    (xid,) = (it for it in _told(run, levels=Xid(record=(79,))) if it.xid is not None)
    assert not xid.pages


def test_what_lies_outside_the_time_is_not_told(run: RunDir) -> None:
    _kernel(run, T - 5000)
    assert not any(it.xid for it in _told(run))
    assert _told(run, Window(T - 900, T + 350, T)) != _told(run)


def test_the_last_step_of_whom_the_verdict_names(run: RunDir) -> None:
    (last,) = witnesses_of(run, WINDOW, Xid()).last_steps
    assert (last.text, last.source) == (
        "rank 1: its last step completed (step 100)",
        "signals/rank_00001.jsonl:102",
    )
    assert last.t == pytest.approx(T, abs=0.1)


def test_a_run_directory_without_anything_tells_nothing(tmp_path: Path) -> None:
    assert witnesses_of(RunDir(tmp_path), WINDOW, Xid()).moments == ()


def test_signals_that_came_minutes_apart_are_not_told_as_of_the_first(run: RunDir) -> None:
    for rank, t in ((0, T + 200), (1, T + 3)):
        with run.signals_of(rank).open("a") as file:
            file.write(_line(rank, t, event="signal", number=15) + "\n")
            file.write(_line(rank, t + 1, event="signal", number=2) + "\n")
    said = [(round(it.t or 0.0) - T, it.text) for it in _told(run) if it.text.startswith("signal")]
    assert said == [
        (3, "signal on rank 1: number 15 (attempt 0)"),
        (4, "signal on rank 1: number 2 (attempt 0)"),
        (200, "signal on rank 0: number 15 (attempt 0)"),
        (201, "signal on rank 0: number 2 (attempt 0)"),
    ]
