"""What trainer_state.json tells of a run through all its sessions."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest

from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.sources.formats.hugging_face.trainer_state import TrainerState


def state(*history: Any, **more: Any) -> bytes:
    whole = {"best_metric": None, "epoch": 1.0, "global_step": 30, **more, "log_history": list(history)}
    return json.dumps(whole, indent=2).encode()


def facts(content: bytes) -> list[Fact]:
    return list(TrainerState().facts(content, "/out/checkpoint-30/trainer_state.json"))


TRAINED = {"epoch": 0.5, "grad_norm": 1.25, "learning_rate": 4e-05, "loss": 2.5, "step": 10}
EVALUATED = {"epoch": 0.5, "eval_loss": 2.25, "eval_runtime": 3.5, "step": 10}
SUMMARY = {"epoch": 1.0, "step": 30, "total_flos": 5e15, "train_loss": 2.4, "train_runtime": 915.3}


def test_the_file_is_known_by_its_keys_or_its_name() -> None:
    reader = TrainerState()
    assert reader.fits(state()[:4096], "any.json")
    assert reader.fits(b'{\n "best_global_step": null', "/out/checkpoint-30/trainer_state.json")
    assert not reader.fits(b'{"pid": 4, "threads": []}', "rank_0.json")
    assert not reader.fits(b"[1, 2]", "trainer_state.json")


def test_rows_of_the_training_of_an_evaluation_and_of_the_end() -> None:
    step, evaluated, ended = facts(state(TRAINED, EVALUATED, SUMMARY))
    assert isinstance(step, Step)
    assert (step.step, step.source) == (10, "/out/checkpoint-30/trainer_state.json:log_history[0]")
    assert step.values == {"epoch": 0.5, "grad_norm": 1.25, "lr": 4e-05, "loss": 2.5}
    assert isinstance(evaluated, Event)
    assert (evaluated.name, evaluated.step, evaluated.details["eval_loss"]) == ("eval_end", 10, 2.25)
    assert isinstance(ended, Event)
    assert (ended.name, ended.step, ended.details["train_runtime"]) == ("run_end", 30, 915.3)


def test_a_bare_nan_and_a_number_in_quotes() -> None:
    content = state({**TRAINED, "loss": math.nan}, {**TRAINED, "loss": "1.922", "step": 20})
    assert b": NaN" in content
    first, second = facts(content)
    assert isinstance(first, Step)
    assert isinstance(second, Step)
    assert math.isnan(first.values["loss"])
    assert second.values["loss"] == 1.922


def test_a_filtered_nan_shows_in_the_gradient_norm() -> None:
    _, fault = facts(state({**TRAINED, "loss": 2.0, "grad_norm": math.nan}))
    assert isinstance(fault, Fault)
    assert (fault.fault, fault.step) == ("nan_suspected", 10)


def test_tokens_per_second_are_a_difference_within_one_session() -> None:
    rows = [(0, 0.0), (1000, 10.0), (1000, 0.5), (1100, 1.5)]
    history = [
        {**TRAINED, "step": at, "num_input_tokens_seen": tokens, "train_runtime": seconds}
        for at, (tokens, seconds) in enumerate(rows, 1)
    ]
    told = [it.values.get("tokens_per_second") for it in facts(state(*history)) if isinstance(it, Step)]
    assert told == [None, 100.0, None, 100.0]


def test_rows_that_are_none_are_passed_over_and_one_without_a_step_gets_none() -> None:
    without = {key: value for key, value in TRAINED.items() if key != "step"}
    found = facts(state(None, 7, [], {}, {"step": 3}, {**TRAINED, "step": -1}, without))
    assert [(type(it), it.step) for it in found] == [(Event, None), (Event, None)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (state(TRAINED)[:-9], "is no whole JSON"),
        (b"[" * 100_000, "is no whole JSON"),
        (b"\xff\xfe", "is no whole JSON"),
        (b"[1]", "holds no JSON object"),
        (b"{}", "has no list log_history"),
        (b'{"log_history": {"a": 1}}', "has no list log_history"),
    ],
)
def test_a_damaged_file_is_said_in_words(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words) as problem:
        facts(content)
    assert "trainer_state.json" in str(problem.value)


def test_mutated_files_are_read_or_refused() -> None:
    rng, whole = random.Random(5), state(TRAINED, EVALUATED, SUMMARY)
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randint(0, 4)] = rng.randbytes(rng.randint(0, 4))
        try:
            facts(bytes(data))
        except ValueError as problem:
            assert "trainer_state.json" in str(problem)  # noqa: PT017
