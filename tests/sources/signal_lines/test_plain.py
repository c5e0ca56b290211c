"""Plain lines: what the fast struct takes, the careful decoder takes without a word, and no line is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.facts import Step
from train_ledger.fields import FIELDS
from train_ledger.sources import SignalDecoder
from train_ledger.sources.signal_lines.plain import Run, runs

STEP = b'{"t":%d,"step":%d,"rank":3,"loss":2.5,"unknown":{"a":[1]}}'


def steps(*numbers: int) -> list[bytes]:
    return [STEP % (1000 + number, number) for number in numbers]


def found(*lines: bytes, rank: int = 3) -> list[tuple[int, int, bool]]:
    """(place, how many lines, whether they are plain) of each run."""
    return [(run.place, len(run.lines), run.plain is not None) for run in runs(b"\n".join(lines), rank)]


def test_steps_in_a_row_are_one_run() -> None:
    (run,) = runs(b"\n".join(steps(1, 2, 3, 10)), 3)
    assert run.plain is not None
    assert [(line.t, line.step, line.loss) for line in run.plain] == [
        (1001.0, 1, 2.5),
        (1002.0, 2, 2.5),
        (1003.0, 3, 2.5),
        (1010.0, 10, 2.5),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":9,"rank":3,"event":"eval_start"}',
        b'{"t":9,"step":9,"rank":3,"event":null}',
        b'{"t":9,"step":9,"rank":3,"event":0}',
        b'{"t":9,"step":9,"rank":4}',
        b'{"t":9,"step":9,"rank":3,"loss":"NaN"}',
        b'{"t":9,"step":9,"rank":3,"loss":NaN}',
        b'{"t":9,"step":9,"rank":3,"lr":"high"}',
        b'{"t":9,"step":9,"rank":3,"lr":true}',
        b'{"t":9,"step":9,"rank":3,"note":"\xff"}',
        b'{"t":9,"step":9,"rank":3,"note":"\\ud800abcdefgh"}',
        b'{"t":1e12,"step":9,"rank":3}',
        b'{"step":9,"rank":3}',
        b'{"t":9,"step":9,"rank":3}{"t":9,"step":10,"rank":3}',
        b'{"t":9,"step":9,',
        b"",
        b"[" * 5000,
    ],
)
def test_a_line_that_is_not_plain_parts_the_steps_around_it(line: bytes) -> None:
    assert found(*steps(1, 2, 3, 4), line, *steps(5, 6, 7, 8)) == [(0, 4, True), (4, 1, False), (5, 4, True)]


@pytest.mark.parametrize("numbers", [(1, 2, 3, 4, 4, 5, 6, 7), (5, 6, 7, 8, 1, 2, 3, 4)])
def test_a_step_that_does_not_rise_begins_another_run(numbers: tuple[int, ...]) -> None:
    assert found(*steps(*numbers)) == [(0, 4, True), (4, 4, True)]


def test_another_attempt_begins_another_run() -> None:
    later = [line.replace(b'"rank":3', b'"rank":3,"attempt":1') for line in steps(5, 6, 7, 8)]
    assert found(*steps(1, 2, 3, 4), *later) == [(0, 4, True), (4, 4, True)]


def test_the_file_lends_its_rank_unless_no_job_has_it() -> None:
    nameless = [line.replace(b'"rank":3,', b"") for line in steps(1, 2, 3, 4)]
    assert found(*nameless, rank=7) == [(0, 4, True)]
    assert found(*nameless, rank=999_999_999) == [(0, 4, False)]


def test_an_object_over_two_lines_is_two_bad_lines() -> None:
    assert found(*steps(1, 2, 3, 4), b'{"t":9,', b'"step":9,"rank":3}') == [(0, 4, True), (4, 2, False)]


_NUMBER = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0, 1, 2, 1.0, 1e11]),
)
_ANY = st.one_of(_NUMBER, st.none(), st.booleans(), st.text(max_size=4), st.lists(st.integers(), max_size=2))
_OBJECT = st.dictionaries(
    st.sampled_from(["t", "step", "rank", "attempt", "event", "loss", "num_ooms", "host", "x"]), _ANY
)
_PLAIN = st.fixed_dictionaries(
    {"t": _NUMBER, "step": st.integers(0, 50)}, optional={"rank": st.just(3), "loss": _NUMBER, "x": _ANY}
)
_RAW = st.sampled_from(
    [
        b"",
        b"  ",
        b"{}",
        b'{"t":1,"step":2} ',
        b'{"t":1,"step":2}x',
        b'{"t":1,"step":02}',
        b'{"t":1,"step":2,"loss":1e999}',
        b'{"t":1,"step":2,"x":1e999}',
        b'{"t":1,"step":2,"loss":' + b"9" * 400 + b"}",
        b'{"t":1,"step":2,"step":"x"}',
        b'{"t":1,"step":"x","step":2}',
        b'{"t":1,"step":2,"x":"\x01"}',
        b'{"t":1,"step":2,"x":"\xc3\xa4"}',
        b'\xef\xbb\xbf{"t":1,"step":2}',
    ]
)


def written(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode()


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.one_of(_PLAIN.map(written), _OBJECT.map(written), _RAW), min_size=1, max_size=12), st.data()
)
def test_plain_lines_are_what_the_careful_decoder_says_and_no_line_is_lost(
    lines: list[bytes], data: st.DataObject
) -> None:
    repeated = [line for line in lines for _ in range(data.draw(st.sampled_from([1, 1, 6])))]
    place = 0
    for run in runs(b"\n".join(repeated), 3):
        assert (run.place, run.lines) == (place, repeated[place : place + len(run.lines)])
        place += len(run.lines)
        check(run)
    assert place == len(repeated)


def check(run: Run) -> None:
    decoder = SignalDecoder()
    for plain, line in zip(run.plain or (), run.lines, strict=False):
        fact = decoder.decode(line, rank=3)
        assert isinstance(fact, Step)
        assert (fact.t, fact.step, fact.rank, fact.attempt) == (plain.t, plain.step, 3, plain.attempt)
        assert {name: fact.values.get(name) for name in FIELDS} == {
            name: getattr(plain, name) for name in FIELDS
        }
    assert not decoder.bad_lines
