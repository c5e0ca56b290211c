"""A run that writes logs alone is watched: its hang is paged in time, its healthy silence is not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from train_ledger.config import Config
from train_ledger.run_dir import RunDir
from train_ledger.watch import Keeper
from train_ledger.watch.clock import RunClock
from train_ledger.watch.console import Console

T0 = 1_770_000_000.0


class Watched:
    """A keeper, the logs that it follows and the clock of both."""

    def __init__(self, path: Path) -> None:
        self.run_dir = RunDir(path)
        self.t = T0
        self.keeper = self.another()

    def another(self) -> Keeper:
        """A keeper that begins now."""
        return Keeper(self.run_dir, Config(), Console(lambda line: None), RunClock(lambda: self.t))

    def write(self, text: str, log: str = "logs/train.log") -> None:
        file = self.run_dir.path / log
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as stream:
            stream.write(text)
        os.utime(file, (self.t, self.t))

    def turn(self) -> str:
        self.keeper.turn()
        return self.keeper.state.state

    def wait(self, seconds: float, every_s: float = 10.0) -> set[str]:
        """The alerts that were open at any time meanwhile."""
        seen: set[str] = set()
        until = self.t + seconds
        while self.t < until:
            self.t = min(until, self.t + every_s)
            self.turn()
            seen |= {alert.name for alert in self.keeper.open_alerts}
        return seen


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path / "r42")
    yield made
    made.keeper.close()


def megatron(step: int, *, took_s: float = 12.0) -> str:
    return (
        f" iteration {step:8d}/   90000 | consumed samples: {step * 64:12d} | elapsed time per iteration "
        f"(ms): {took_s * 1e3:.1f} | learning rate: 1.5E-04 | lm loss: 2.5E+00 | grad norm: 1.250 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def hf(epoch: float) -> str:
    return f"{{'loss': 2.31, 'grad_norm': 1.25, 'learning_rate': 2e-05, 'epoch': {epoch:.2f}}}\n"


def train(watched: Watched, first: int, last: int, *, every: int = 10, step_s: float = 12.0) -> set[str]:
    """Megatron takes its steps and prints every tenth."""
    seen: set[str] = set()
    for step in range(first, last + 1, every):
        seen |= watched.wait(every * step_s, every_s=30.0)
        watched.write(megatron(step, took_s=step_s))
        watched.turn()
    return seen


def test_between_two_prints_of_ten_steps_nobody_is_paged(watched: Watched) -> None:
    assert train(watched, 10, 400) == set()
    assert watched.turn() == "running"
    state = watched.keeper.state
    assert (state.step, state.p50_step_time_s) == (400, 12.0)
    assert state.stall_threshold_s == 360.0  # 3 × 12 s × 10 steps


def test_a_hang_is_paged_when_three_prints_are_missing(watched: Watched) -> None:
    train(watched, 10, 400)
    assert watched.wait(355.0) == set()
    assert watched.wait(30.0) == {"TrainingStepStalled"}
    assert watched.keeper.state.ranks[0].speaks_for_all


def test_a_line_between_the_prints_does_not_shorten_the_patience(watched: Watched) -> None:
    train(watched, 10, 400)
    watched.t += 12
    watched.write(megatron(401))  # a step that printed more than usual
    watched.turn()
    assert watched.wait(355.0) == set()


def test_a_checkpoint_raises_the_limit(watched: Watched) -> None:
    train(watched, 10, 100, step_s=2.0)
    assert watched.keeper.state.stall_threshold_s == 90.0
    watched.write("saving checkpoint at iteration     100 to /ckpt in torch_dist format\n")
    assert watched.wait(500.0) == set()
    assert watched.keeper.state.phase == "checkpoint_save"
    assert watched.wait(200.0) == {"TrainingStepStalled"}  # 600 s are over


def test_a_launcher_that_writes_a_block_at_a_time_is_not_paged_between_two(watched: Watched) -> None:
    """Forty lines of a step each come at once, every 480 s."""
    step = 0
    for _ in range(6):
        seen = watched.wait(480.0, every_s=30.0)
        lines = "".join(megatron(step + it) for it in range(1, 41))
        step += 40
        watched.write(lines)
        watched.turn()
    assert seen == set()
    assert watched.keeper.state.stall_threshold_s == pytest.approx(1440.0)
    assert watched.wait(1500.0) == {"TrainingStepStalled"}


def test_a_keeper_that_comes_to_a_buffered_log_has_the_patience_of_a_buffer(watched: Watched) -> None:
    watched.keeper.close()
    whole = "".join(map(megatron, range(1, 200)))
    watched.write(whole[: len(whole) - 100])
    watched.keeper = watched.another()
    watched.turn()
    line_bytes = len(megatron(1))
    assert watched.keeper.state.stall_threshold_s == pytest.approx(3 * 12.0 * 8192 / line_bytes, rel=0.1)


def test_records_without_steps_keep_a_run_from_being_paged_and_their_end_does_not(watched: Watched) -> None:
    """The Trainer of Hugging Face, without its bars, tells neither step nor time."""
    watched.write("".join(hf(it / 100) for it in range(1, 40)))  # what lay there when the keeper came
    assert watched.wait(600.0) == set()
    seen: set[str] = set()
    for it in range(40, 50):
        watched.write(hf(it / 100))
        seen |= watched.wait(500.0, every_s=20.0)
    assert seen == set()
    assert watched.wait(1200.0, every_s=20.0) == set()
    assert watched.wait(200.0, every_s=20.0) == {"TrainingStepStalled"}


def test_a_run_that_ends_is_finished(watched: Watched) -> None:
    train(watched, 10, 60)
    watched.write("[after training is done] datetime: 2026-02-02 10:00:00 \n")
    watched.turn()
    assert watched.keeper.state.finished
    assert watched.wait(4000.0, every_s=100.0) == set()


def test_a_restart_goes_on_with_the_clock(watched: Watched) -> None:
    train(watched, 10, 200)
    assert train(watched, 110, 160) <= {"TrainingRestarting"}
    state = watched.keeper.state
    assert (state.attempt, state.step, state.state) == (1, 160, "recovering")


def test_a_run_that_never_takes_a_step_is_paged(watched: Watched) -> None:
    watched.write("NCCL INFO Bootstrap : Using eth0\n")
    assert watched.wait(1700.0, every_s=100.0) == set()
    assert watched.keeper.state.state == "starting"
    assert watched.wait(300.0, every_s=100.0) == {"TrainingStepStalled"}


def titan(watched: Watched, rank: int, step: int, *, span: str = "step") -> None:
    record = {"rank": rank, "global_rank": rank, "source": "training", "host_name": "n1", "pid": None}
    record |= {"tid": 7, "step": step, "relative_step": step, "log_type": "event"}
    begun = {**record, "time_us": int((watched.t - 5.0) * 1e6), "log_type_name": f"{span}_start"}
    ended = {**record, "time_us": int(watched.t * 1e6), "log_type_name": f"{span}_end", "value": 5000.0}
    log = f"structured_logs/training.global_rank_{rank}.20260101-ab.jsonl"
    watched.write(f"{json.dumps(begun)}\n{json.dumps(ended)}\n", log)


def test_four_ranks_of_torchtitan_stand_and_nobody_is_accused(watched: Watched) -> None:
    for step in range(1, 60):
        watched.t += 5.0
        for rank in range(4):
            titan(watched, rank, step)
        watched.turn()
    for rank in (0, 1, 3):  # rank 2 fell silent a step before the others
        titan(watched, rank, 60)
    assert watched.wait(80.0) == set()
    assert watched.wait(120.0) == {"TrainingStepStalled"}
    diagnosis = watched.keeper.diagnosis
    assert watched.keeper.state.step == 60
    assert diagnosis is None or diagnosis.ranks == ()


def test_signals_that_come_later_win(watched: Watched) -> None:
    train(watched, 10, 100)
    watched.run_dir.signals.mkdir()
    for step in range(1, 30):
        watched.t += 1.0
        line = {"t": watched.t, "step": step, "rank": 0, "loss": 2.0}
        watched.write(json.dumps(line) + "\n", "signals/rank_00000.jsonl")
        watched.turn()
    state = watched.keeper.state
    assert (state.step, state.attempt, state.ranks[0].speaks_for_all) == (29, 0, False)


def test_what_torchtitan_prints_and_records_is_one_run(watched: Watched) -> None:
    """Its ranks write structured logs, its launcher keeps what they print: each step is told twice."""
    for rank in range(2):
        record = {"rank": rank, "global_rank": rank, "source": "training", "host_name": "n1", "pid": None}
        start = {**record, "tid": 7, "time_us": int(watched.t * 1e6), "log_type": "instant"}
        start |= {"log_type_name": "training_start"}
        watched.write(
            json.dumps(start) + "\n", f"structured_logs/training.global_rank_{rank}.20260101-ab.jsonl"
        )
    for step in range(1, 60):
        watched.t += 5.0
        for rank in range(2):
            titan(watched, rank, step)
        watched.write(
            f"[titan] 2026-01-01 00:00:00,000 - root - INFO - step: {step:2}  loss:  2.5000  "
            "grad_norm:  1.2  memory: 10.00GiB(12.00%)  tps: 1,234  tflops: 10.00  mfu: 4.00%\n"
        )
        watched.turn()
    state = watched.keeper.state
    assert (state.step, state.attempt, state.state) == (59, 0, "running")
    assert {rank: it.speaks_for_all for rank, it in state.ranks.items()} == {0: False, 1: False}
    assert state.p50_step_time_s == pytest.approx(5.0)


def test_an_evaluation_of_which_only_the_end_is_printed_is_waited_for_from_the_second_on(
    watched: Watched,
) -> None:
    validated = " validation loss at iteration {} | lm loss value: 2.1E+00 | lm loss PPL: 8.1E+00 |\n"
    train(watched, 1, 100, every=1, step_s=10.0)
    assert watched.keeper.state.stall_threshold_s == 90.0
    watched.wait(200.0)  # the first is a surprise
    watched.write(validated.format(100))
    watched.turn()
    assert watched.keeper.state.state == "running"
    train(watched, 101, 170, every=1, step_s=10.0)
    assert train(watched, 171, 180, every=1, step_s=10.0) == set()
    assert watched.keeper.state.p50_step_time_s == 10.0
    assert watched.wait(220.0) == set()
    watched.write(validated.format(180))
    assert watched.wait(500.0) == set()
    assert watched.wait(300.0) == {"TrainingStepStalled"}


def test_the_end_of_torchtitan_is_the_end_of_the_run(watched: Watched) -> None:
    for step in range(1, 30):
        watched.t += 5.0
        for rank in range(2):
            titan(watched, rank, step)
        watched.turn()
    for rank in range(2):
        titan(watched, rank, 30, span="torch_distributed_teardown")
    watched.turn()
    assert watched.keeper.state.finished
    assert watched.wait(4000.0, every_s=100.0) == set()


def bars(first: int, last: int) -> str:
    """What tqdm draws of steps of a second, and the record that ends the line."""

    def clock(seconds: int) -> str:
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"

    drawn = [
        f"{step / 200:3.0f}%|#  | {step}/20000 [{clock(step)}<{clock(20000 - step)},  1.00s/it]"
        for step in range(first, last)
    ]
    return "\r".join(drawn) + "\r" + hf(last / 1000).rstrip("\n") + "\n"


def test_bars_of_a_trainer_that_ends_a_line_every_500_seconds(watched: Watched) -> None:
    watched.keeper.close()
    watched.write("".join(bars(500 * it, 500 * (it + 1)) for it in range(6)))
    watched.keeper = watched.another()
    watched.turn()
    seen: set[str] = set()
    for it in range(6, 12):
        seen |= watched.wait(500.0, every_s=50.0)
        watched.write(bars(500 * it, 500 * (it + 1)))
        watched.turn()
    assert seen == set()
    step = watched.keeper.state.step
    assert step is not None
    assert 5990 <= step <= 6000
    assert watched.wait(1400.0, every_s=50.0) == set()
    assert watched.wait(300.0, every_s=50.0) == {"TrainingStepStalled"}
