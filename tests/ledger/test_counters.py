"""Every counter is asked for, and the last number that was told of it is taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from train_ledger.fields import FIELDS
from train_ledger.ledger.counters import COUNTERS, newest_counters, with_counters


def plain(**values: float) -> Any:
    return SimpleNamespace(**{**dict.fromkeys(COUNTERS), **values})


def test_the_counters_are_those_of_the_table() -> None:
    assert {name for name, field in FIELDS.items() if field.kind == "counter"} == COUNTERS


def test_each_counter_is_read_under_its_own_name() -> None:
    for name in COUNTERS:
        assert newest_counters([plain(**{name: 1.0}), plain(**{name: 2.0}), plain()], but=()) == {name: 2.0}
        assert newest_counters([plain(**{name: 1.0})], but={name}) == {}


def test_a_counter_that_a_line_leaves_out_stays_where_it_was() -> None:
    earlier = {"skipped": 3.0, "num_ooms": 1.0, "loss": 2.0}
    assert with_counters({"loss": 1.9, "skipped": 4.0}, earlier) == {
        "loss": 1.9,
        "skipped": 4.0,
        "num_ooms": 1.0,
    }
