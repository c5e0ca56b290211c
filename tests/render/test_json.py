"""What a script reads."""

from __future__ import annotations

import json

from train_ledger.answer import Diagnosis, Finding, Group, HangAnswer, Impact
from train_ledger.render import as_json


def test_the_contract_of_the_hang_answer() -> None:
    group = Group("0", "default_pg", (0, 1))
    answer = HangAnswer("hang", (1,), findings=(Finding("missing_ranks", (1,), group, 3, "barrier"),))
    told = json.loads(as_json(answer))
    assert list(told)[:3] == ["schema", "verdict", "culprits"]
    assert told["schema"] == 1
    assert told["findings"][0]["group"] == {
        "name": "0",
        "desc": "default_pg",
        "ranks": [0, 1],
        "inferred": False,
    }


def test_what_is_no_number_is_a_word() -> None:
    told = as_json(Diagnosis("stalled", "unknown", impact=Impact(float("nan"), float("inf"), float("-inf"))))
    assert json.loads(told)["impact"] == {"wall_s": "NaN", "gpu_hours": "Infinity", "cost": "-Infinity"}


def test_victims_are_named_by_culprit() -> None:
    told = json.loads(as_json(HangAnswer("hang", (5,), victims_of={5: (0, 1)})))
    assert told["victims_of"] == {"5": [0, 1]}


def test_one_line_and_nothing_that_a_terminal_obeys() -> None:
    told = as_json(HangAnswer("cannot_tell", not_observed=("\x1b[2J\x9b\n\ud800",)), indent=None)
    assert told.isascii()
    assert told.isprintable()


def test_half_a_pair_of_utf_16_is_replaced_and_whole_ones_stay() -> None:
    told = as_json({"a\udfff": ["\ud800", "\U0001f525", "b\\ud800"]}, indent=None)
    assert json.loads(told) == {"schema": 1, "a\ufffd": ["\ufffd", "\U0001f525", "b\\ud800"]}


def test_any_object_gets_the_schema() -> None:
    assert json.loads(as_json({"incident": "i1", "markdown": "# x"})) == {
        "schema": 1,
        "incident": "i1",
        "markdown": "# x",
    }
