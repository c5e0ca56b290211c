"""A fact on one line that any script can read."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.facts import Event, Fault, Step
from train_ledger.render import fact_line

KEYS = ["t", "step", "rank", "host", "attempt", "source"]

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def strict(line: str) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return dict(json.loads(line, parse_constant=refuse))


def test_the_keys_of_every_fact_come_first() -> None:
    step = strict(fact_line(Step(1.5, 7, 3, 1, "n7", "a.log:9", {"loss": 2.0})))
    assert list(step) == ["kind", *KEYS, "loss"]
    event = strict(fact_line(Event(1.5, "ckpt_saved", 3, details={"duration_s": 2.5})))
    assert list(event) == ["kind", "event", *KEYS, "duration_s"]
    fault = strict(fact_line(Fault(None, "oom", details={"local_gpu": 3})))
    assert list(fault) == ["kind", "fault", *KEYS, "local_gpu"]


def test_what_is_not_known_is_null_and_what_is_no_number_a_word() -> None:
    told = strict(fact_line(Step(math.nan, 7, None, values={"loss": math.nan, "grad_norm": -math.inf})))
    assert (told["t"], told["rank"], told["loss"], told["grad_norm"]) == (None, None, "NaN", "-Infinity")


def test_only_the_fields_that_are_asked_for() -> None:
    told = strict(fact_line(Step(1.0, 7, 0, values={"loss": 2.0, "lr": 0.1}), {"loss", "mfu"}))
    assert set(told) == {"kind", *KEYS, "loss"}


def test_nothing_that_a_log_says_takes_the_place_of_a_key() -> None:
    told = strict(fact_line(Fault(1.0, "oom", 3, details={"kind": "x", "rank": 9, "fault": "none"})))
    assert (told["kind"], told["rank"], told["fault"]) == ("fault", 3, "oom")
    assert (told["kind_"], told["rank_"], told["fault_"]) == ("x", 9, "none")


def test_a_file_whose_name_is_no_utf_8_is_named_so_that_strict_readers_take_it() -> None:
    assert strict(fact_line(Event(1.0, "x", 0, source="a\udcff.log:1")))["source"] == "a\ufffd.log:1"


def test_lists_within_lists_are_written_to_a_depth() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert "\\u2026" in fact_line(Event(1.0, "x", 0, details={"deep": deep}))


@given(st.dictionaries(st.text(), values, max_size=4))
def test_one_line_of_ascii_whatever_is_told(details: dict[str, Any]) -> None:
    line = fact_line(Event(1.0, "x", 0, details=details))
    assert line.isascii()
    assert line.isprintable()
    assert set(KEYS) <= set(strict(line))
