"""What LLaMA-Factory's trainer_log.jsonl tells, and what in it is no step of the training."""

from __future__ import annotations

import json

import pytest

from train_ledger.facts import Event, Fact, Step
from train_ledger.sources.formats.hugging_face.llama_factory import LlamaFactory
from train_ledger.sources.lines.log_line import LogLine

FILE = "/out/trainer_log.jsonl"


def record(step: int, **more: object) -> str:
    times = {"percentage": 5.0, "elapsed_time": "0:02:00", "remaining_time": "0:38:00"}
    return json.dumps({"current_steps": step, "total_steps": 100, **more, **times})


def facts(*lines: str, reader: LlamaFactory | None = None) -> list[Fact]:
    reader = reader or LlamaFactory()
    return [
        fact
        for number, line in enumerate(lines, 1)
        for fact in reader.read(LogLine(line), f"{FILE}:{number}")
    ]


def test_the_file_is_known_by_its_first_record() -> None:
    assert LlamaFactory.fits(record(5, loss=2.5).encode(), "/out/log.jsonl")
    assert not LlamaFactory.fits(b'{"step": 5, "loss": 2.5}\n', FILE)
    assert not LlamaFactory.fits(b"", FILE)


def test_a_record_is_a_step() -> None:
    (step,) = facts(record(5, loss=2.5, lr=1e-06, epoch=0.25, throughput=13000.0, total_tokens=1600000))
    assert isinstance(step, Step)
    assert (step.step, step.source) == (5, f"{FILE}:1")
    assert step.values == {
        "loss": 2.5,
        "lr": 1e-06,
        "epoch": 0.25,
        "throughput": 13000.0,
        "consumed_tokens": 1600000.0,
    }


def test_the_names_of_2023_and_their_nulls() -> None:
    (step,) = facts(
        record(5, loss=2.5, eval_loss=None, predict_loss=None, reward=None, learning_rate=4.8e-05)
    )
    assert isinstance(step, Step)
    assert step.values == {"loss": 2.5, "lr": 4.8e-05}


def test_the_time_of_a_step_is_between_two_records_and_none_is_told_across_a_resume() -> None:
    first = record(10, loss=2.5)
    lines = [first, first.replace("10,", "20,", 1).replace("0:02:00", "1 day, 0:02:00"), first]
    found = facts(*lines)
    assert [it.values.get("step_time_s") for it in found if isinstance(it, Step)] == [None, 8640.0, None]


def test_an_evaluation_is_no_step_and_its_progress_is_nothing() -> None:
    (end,) = facts(record(30), record(30, eval_loss=1.25))
    assert isinstance(end, Event)
    assert (end.name, end.step, end.details) == ("eval_end", 30, {"eval_loss": 1.25})


@pytest.mark.parametrize("line", ["{", "[" * 100_000, '{"current_steps": -1}', '{"current_steps": "5"}', "7"])
def test_a_damaged_line_is_counted(line: str) -> None:
    reader = LlamaFactory()
    assert facts(line, reader=reader) == []
    assert reader.damaged.total() == 1
