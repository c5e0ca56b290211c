"""What is put down is taken up as it was."""

from __future__ import annotations

import math
from collections import deque
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.config import Config
from train_ledger.facts import Event, Step
from train_ledger.ledger import Fold
from train_ledger.ledger.memo import MemoError, from_plain, put_down, take_up, to_plain

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
KEYS = st.integers() | st.text() | st.tuples(st.integers(), st.integers())
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner)
        | st.sets(st.integers())
        | st.frozensets(KEYS)
        | st.builds(deque, st.lists(inner), st.integers(0, 9))
    ),
    max_leaves=20,
)


def there_and_back(value: object) -> Any:
    return from_plain(msgspec.msgpack.decode(msgspec.msgpack.encode(to_plain(value))))


@given(VALUES)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    assert there_and_back(value) == value


def test_the_order_of_a_dict_and_the_length_of_a_deque_come_back() -> None:
    assert list(there_and_back({2: "a", 1: "b"})) == [2, 1]
    assert there_and_back(deque([1, 2], maxlen=2)).maxlen == 2


def test_numbers_that_are_none_come_back() -> None:
    back = there_and_back([math.nan, math.inf, -math.inf])
    assert math.isnan(back[0])
    assert back[1:] == [math.inf, -math.inf]


def test_a_fold_goes_on_as_if_it_had_never_been_put_down() -> None:
    steady, anew = Fold("r42", Config()), Fold("r42", Config())
    for number in range(300):
        t, rank = 1000.0 + number, number % 3
        odd = Event(
            t, "phase_start", rank, number, 0, f"node{rank}", "", {"phase": "evaluation", "big": 10**30}
        )
        fact = odd if number % 17 == 0 else Step(t, number // 3, rank, 0, f"node{rank}", "", {"loss": 2.0})
        later = Step(t, 1, rank, 7, None, "", {"loss": 2.0}) if number % 50 == 0 else fact
        for fold in (steady, anew):
            fold.add(fact)
            fold.add(later)
        if number % 40 == 0:
            parts = there_and_back(put_down(anew))
            anew = Fold("r42", Config())
            take_up(anew, parts)
        assert anew.state(2000.0) == steady.state(2000.0)


def test_what_is_no_part_of_a_fold_has_no_place() -> None:
    with pytest.raises(MemoError, match="Path"):
        to_plain({"where": Path()})


@pytest.mark.parametrize("plain", [[], [1], ["os.system", "true"], ["train_ledger.ledger.rank.Nothing"]])
def test_what_nobody_put_down_makes_nothing(plain: Any) -> None:
    with pytest.raises(MemoError):
        from_plain(plain)


@pytest.mark.parametrize(
    "plain",
    [["int"], ["deque", -1], ["set", ["list"]], ["train_ledger.facts.Step", "t", 1.0], ["dict", 1, 2, 3]],
)
def test_what_to_plain_never_makes_is_damaged_and_raises_nothing_else(plain: Any) -> None:
    with pytest.raises(MemoError, match="is damaged"):
        from_plain(plain)


@pytest.mark.parametrize("name", ["_ranks", "_speakers", "_starts", "_hardware"])
def test_parts_that_make_no_fold_are_refused_and_change_nothing(name: str) -> None:
    fold, other = Fold("r42", Config()), Fold("r42", Config())
    other.add(Step(1000.0, 7, 0, 0, "n1", "", {"loss": 2.0}))
    for parts in (put_down(other) | {name: "x"}, {"_ranks": {}}, None):
        with pytest.raises(MemoError, match="is damaged"):
            take_up(fold, parts)
    assert fold.state(0.0) == Fold("r42", Config()).state(0.0)


@pytest.mark.parametrize("name", ["folds", "attempts", "clocks", "saves"])
def test_ranks_of_parts_that_make_no_ranks_are_refused_and_change_nothing(name: str) -> None:
    fold, other = Fold("r42", Config()), Fold("r42", Config())
    other.add(Step(1000.0, 7, 0, 0, "n1", "", {"loss": 2.0}))
    parts = put_down(other)
    setattr(parts["_ranks"], name, "x")
    with pytest.raises(MemoError, match="is damaged"):
        take_up(fold, parts)
    assert fold.state(0.0) == Fold("r42", Config()).state(0.0)
