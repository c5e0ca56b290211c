"""Where to go back to after a NaN, which data to leave out, and whether it is the data or the numerics."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.cascades import START_T, Ranks, iteration, put_log
from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.run_dir import RunDir


@pytest.fixture
def ranks(tmp_path: Path) -> Ranks:
    (tmp_path / "r42").mkdir()
    made = Ranks(RunDir(tmp_path / "r42"), 4)
    made.start()
    return made


def saving(ranks: Ranks, saves: int, *, every: int, durable: bool = True) -> None:
    for _ in range(saves):
        ranks.steps(every)
        ranks.save(durable=durable)


def found(ranks: Ranks) -> Diagnosis:
    return diagnose(ranks.run, Config(), at=ranks.t + 1)


def line_with(told: Diagnosis, words: str) -> str:
    return next((line for line in told.evidence if words in line), "")


def test_the_newest_durable_checkpoint_a_hundred_steps_before_and_the_data_from_there(ranks: Ranks) -> None:
    saving(ranks, 10, every=20)
    ranks.steps(7)
    ranks.steps(5, loss="NaN")
    told = found(ranks)
    assert (told.cause, told.since_step) == ("numeric.nan", 208)
    assert line_with(told, "go back").startswith(
        "go back to the checkpoint of step 100, saved at 14:15:10 UTC (durable"
    )
    assert "(signals/rank_00000.jsonl:111)" in line_with(told, "go back").replace("(durable; ", "(")
    assert "samples 6,400 to 13,376, consumed from step 100 to step 209" in line_with(told, "to leave out")
    assert any("one attempt alone has come to it" in line for line in told.not_observed)
    assert any("nobody has looked at" in line for line in told.not_observed)


def test_what_is_not_durable_is_not_gone_back_to(ranks: Ranks) -> None:
    saving(ranks, 2, every=20)
    saving(ranks, 4, every=20, durable=False)
    ranks.steps(100)
    ranks.steps(1, loss="NaN")
    assert "checkpoint of step 40," in line_with(found(ranks), "go back")


def test_without_such_a_checkpoint_the_nearest_is_told(ranks: Ranks) -> None:
    saving(ranks, 1, every=20)
    ranks.steps(50)
    ranks.steps(2, loss="NaN")
    told = found(ranks)
    assert not line_with(told, "go back")
    assert any("none that is known is 100 steps before step 71" in line for line in told.not_observed)
    assert any("the newest before it is of step 20" in line for line in told.not_observed)


def test_a_run_that_stopped_at_the_bad_step_leaves_out_one_batch_more(ranks: Ranks) -> None:
    saving(ranks, 1, every=20)
    ranks.steps(100)
    ranks.steps(1, loss="NaN")
    assert "samples 1,280 to 7,808, consumed from step 20 to step 122" in line_with(
        found(ranks), "to leave out"
    )


@pytest.mark.parametrize(("second", "by"), [(30, "it is the data"), (37, "it is the numerics")])
def test_two_attempts_tell_data_from_numerics(ranks: Ranks, second: int, by: str) -> None:
    ranks.steps(29)
    ranks.steps(3, loss="NaN")
    ranks.event("signal", number=15)
    ranks.t += 60
    ranks.start(1, 10)
    ranks.steps(second - 11)
    ranks.steps(2, loss="NaN")
    told = found(ranks)
    assert (told.cause, told.since_step) == ("numeric.nan", second)
    assert by in line_with(told, "bad in attempts 0-1")


def test_the_restart_tells_from_where_and_what_to_leave_out(ranks: Ranks) -> None:
    ranks.run.merge_run({"restart_command": "sbatch train.sh"})
    saving(ranks, 1, every=20)
    ranks.steps(100)
    ranks.steps(2, loss="NaN")
    told = found(ranks)
    (restart,) = (it for it in told.next if it.command == "sbatch train.sh")
    assert restart.why == "restart from the checkpoint of step 20, leaving out samples 1280 to 7808"


def test_lines_that_tell_no_position_name_no_data(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    ranks = Ranks(RunDir(tmp_path / "bare"), 2)
    ranks.start()
    for step in range(1, 131):
        ranks.step, ranks.t = step, ranks.t + 1
        for rank in range(2):
            ranks.line(rank, loss="NaN" if step == 130 else 2.0, step_time_s=1.0)
        if step == 20:
            ranks.save()
    told = found(ranks)
    assert line_with(told, "go back")
    assert not line_with(told, "to leave out")
    assert any(line.startswith("data position: no line tells") for line in told.not_observed)


def test_a_run_that_has_logs_alone_is_advised_by_them(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    text = "".join(iteration(step, START_T + step) for step in range(1, 201))
    text += "".join(iteration(step, START_T + step, "nan") for step in range(201, 204))
    put_log(run, text, START_T + 203)
    told = diagnose(run, Config(), at=START_T + 204)
    assert (told.cause, told.since_step) == ("numeric.nan", 201)
    assert "12,864 consumed (logs/train.log:201)" in told.evidence[0]
    assert any(line.startswith("checkpoints: none that is known") for line in told.not_observed)


def test_a_loss_that_jumped_and_stays_up_is_a_spike_with_the_same_advice(ranks: Ranks) -> None:
    saving(ranks, 2, every=100)
    ranks.steps(50)
    ranks.steps(30, loss=5.1)
    told = found(ranks)
    assert (told.cause, told.ranks, told.since_step) == ("numeric.spike", (), 251)
    assert "was about 2 and is about 5.1 since step 251" in told.evidence[0]
    assert "checkpoint of step 100," in line_with(told, "go back")


def test_a_spike_that_has_gone_back_is_none(ranks: Ranks) -> None:
    ranks.steps(200)
    ranks.steps(10, loss=5.1)
    ranks.steps(30)
    assert found(ranks).cause == "none"


def test_a_loss_that_scatters_is_no_spike(ranks: Ranks) -> None:
    for step in range(300):
        ranks.steps(1, loss=2.0 + 1.5 * ((step * 7919) % 13) / 13)
    assert found(ranks).cause == "none"
