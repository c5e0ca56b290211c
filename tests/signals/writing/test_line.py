"""A line is one JSON object that any reader takes, whatever was logged."""

from __future__ import annotations

import doctest
import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.fields import read_number
from train_ledger.signals.harmless import values
from train_ledger.signals.harmless.values import detail, plain
from train_ledger.signals.sampling import flops, gpu
from train_ledger.signals.writing import attempt, line
from train_ledger.signals.writing.line import event_line, step_line

numbers = st.one_of(st.floats(), st.integers(), st.integers(min_value=2**62, max_value=2**70))
names = st.text(min_size=1, max_size=20)


def strictly(data: bytes) -> dict[str, Any]:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is no JSON")

    content: dict[str, Any] = json.loads(data, parse_constant=refuse)
    return content


@given(fields=st.dictionaries(names, numbers, max_size=12), step=st.integers(0, 2**40))
def test_every_number_comes_back(fields: dict[str, float], step: int) -> None:
    data = step_line(1796000000.25, step, fields, rank=5, attempt=2)
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    content = strictly(data)
    assert (content.pop("t"), content.pop("step")) == (1796000000.25, step)
    assert (content.pop("rank"), content.pop("attempt")) == (5, 2)
    for name, value in content.items():
        assert same(read_number(value), float(fields[name]))
    assert content.keys() == fields.keys() - {"t", "step", "rank", "attempt", "event"}


def same(one: float | None, other: float) -> bool:
    return one is not None and (one == other or (math.isnan(one) and math.isnan(other)))


def test_an_integer_no_float_can_hold_is_infinite() -> None:
    content = strictly(step_line(1.0, 1, {"a": 10**5000, "b": -(10**5000)}, rank=0, attempt=0))
    assert (content["a"], content["b"]) == ("Infinity", "-Infinity")


@given(name=st.sampled_from(["t", "step", "rank", "attempt", "event"]))
def test_a_field_cannot_change_whose_line_it_is(name: str) -> None:
    content = strictly(step_line(1.0, 3, {name: 99}, rank=0, attempt=0))
    assert content == {"t": 1.0, "step": 3, "rank": 0, "attempt": 0}


json_like = st.recursive(
    st.none() | st.booleans() | numbers | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(details=st.dictionaries(names, json_like, max_size=4))
def test_an_event_carries_anything_without_breaking_its_line(details: dict[str, Any]) -> None:
    data = event_line(1.0, None, "warning", detail(details), rank=0, attempt=0)
    assert data.count(b"\n") == 1
    assert strictly(data)["event"] == "warning"


halves = st.text(st.characters(categories=["Cs", "Lu"]), min_size=1, max_size=8)


@given(text=halves)
def test_halves_of_surrogate_pairs_are_written_as_words(text: str) -> None:
    event = event_line(1.0, None, "exception", detail({"message": text, text: [text]}), rank=0, attempt=0)
    for data in (event, step_line(1.0, 1, {text: 2.0}, rank=0, attempt=0)):
        json.dumps(strictly(data), ensure_ascii=False).encode()  # as the reader asks


def test_the_name_of_a_file_that_is_no_utf8_can_still_be_told() -> None:
    assert detail("no such file: caf\udce9") == "no such file: caf\\udce9"


def test_a_detail_is_a_copy_of_bounded_size() -> None:
    inner: list[Any] = [1]
    taken = detail({"inner": inner})
    inner.append(2)
    assert taken == {"inner": [1]}
    circle: list[Any] = []
    circle += [circle] * 50
    assert len(json.dumps(detail(circle))) < 200_000
    assert len(detail("x" * 1_000_000)) == 10_000
    assert detail([0] * 1_000_000) == "list"


class Numeric(float):
    """As numpy.float64: a float by its base."""

    def __float__(self) -> float:
        raise AssertionError("no foreign code may run on the training thread")


class Tensor:
    """Knows how to become a number, at the price of waiting for the GPU."""

    def __float__(self) -> float:
        raise AssertionError("a tensor was synchronised")

    __index__ = __int__ = __bool__ = item = __float__  # type: ignore[assignment]


def test_a_float_by_its_base_is_a_number() -> None:
    assert plain(Numeric(2.5)) == 2.5
    assert type(plain(Numeric(2.5))) is float


@pytest.mark.parametrize("value", [Tensor(), None, "1.0", True, 1j, Decimal(1), [1.0]])
def test_what_is_no_plain_number_is_not_asked_for_one(value: object) -> None:
    assert plain(value) is None


@pytest.mark.parametrize("module", [line, flops, gpu, attempt, values])
def test_the_examples_in_the_words(module: Any) -> None:
    assert doctest.testmod(module).failed == 0
