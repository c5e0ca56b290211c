"""Single signal lines, right and wrong."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.facts import Event, Step
from train_ledger.sources import SignalDecoder


def step_of(line: bytes) -> Step:
    fact = SignalDecoder().decode(line)
    assert isinstance(fact, Step)
    return fact


def test_a_step_line() -> None:
    line = b'{"t": 1700000000.5, "step": 41, "rank": 5, "attempt": 2, "loss": 2.25, "lr": 3e-4, "custom": 7}'
    assert SignalDecoder().decode(line, "signals/rank_00005.jsonl:9", host="node7") == Step(
        t=1700000000.5,
        step=41,
        rank=5,
        attempt=2,
        host="node7",
        source="signals/rank_00005.jsonl:9",
        values={"loss": 2.25, "lr": 3e-4, "custom": 7.0},
    )


def test_an_event_line_keeps_its_details_as_written() -> None:
    line = b'{"t": 2, "rank": 0, "event": "run_start", "world_size": 8, "host": "n1", "uuid": null}'
    assert SignalDecoder().decode(line) == Event(
        t=2.0, name="run_start", rank=0, host="n1", details={"world_size": 8, "host": "n1", "uuid": None}
    )


def test_an_unknown_event_stays_one() -> None:
    fact = SignalDecoder().decode(b'{"t": 2, "rank": 0, "event": "warm_spare_joined", "step": 4}')
    assert isinstance(fact, Event)
    assert (fact.name, fact.step) == ("warm_spare_joined", 4)


@pytest.mark.parametrize("token", [b"NaN", b'"NaN"', b'"nan"'])
def test_not_a_number_as_a_word_and_as_a_bare_token(token: bytes) -> None:
    assert math.isnan(step_of(b'{"t":1,"step":1,"rank":0,"loss":%b}' % token).values["loss"])


@pytest.mark.parametrize(
    ("token", "value"),
    [(b"Infinity", math.inf), (b'"-Infinity"', -math.inf), (b"-Infinity", -math.inf), (b"1e999", math.inf)],
)
def test_infinities(token: bytes, value: float) -> None:
    assert step_of(b'{"t":1,"step":1,"rank":0,"grad_norm":%b}' % token).values == {"grad_norm": value}


def test_an_integer_of_four_hundred_digits_is_infinite() -> None:
    assert step_of(b'{"t":1,"step":1,"rank":0,"loss":%b}' % (b"9" * 400)).values == {"loss": math.inf}


def test_null_strings_and_flags_are_no_values() -> None:
    line = b'{"t":1,"step":1,"rank":0,"loss":null,"note":"warm","flag":true,"list":[1],"lr":0.1}'
    assert step_of(line).values == {"lr": 0.1}


def test_a_known_field_that_is_no_number_is_counted_and_the_rest_taken() -> None:
    decoder = SignalDecoder()
    fact = decoder.decode(b'{"t":1,"step":1,"rank":0,"loss":"high","lr":0.1}', "f:3")
    assert isinstance(fact, Step)
    assert fact.values == {"lr": 0.1}
    assert decoder.bad_lines == {"bad_value": 1}
    assert decoder.last_problem == "f:3: bad_value of loss"


def test_the_file_knows_the_rank_where_the_line_does_not() -> None:
    fact = SignalDecoder().decode(b'{"t":1,"step":1}', rank=7)
    assert isinstance(fact, Step)
    assert fact.rank == 7


@pytest.mark.parametrize("line", [b"", b"  ", b"\r"])
def test_a_blank_line_says_nothing(line: bytes) -> None:
    decoder = SignalDecoder()
    assert decoder.decode(line) is None
    assert not decoder.bad_lines


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[1]", "not_object"),
        (b"null", "not_object"),
        (b"7", "not_object"),
        (b'"x"', "not_object"),
        (b'{"t": 1, "st', "not_json"),
        (b"step 5 loss 2.3", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"step":1,"rank":0}', "missing_field"),
        (b'{"t":null,"step":1,"rank":0}', "missing_field"),
        (b'{"t":1,"rank":0}', "missing_field"),
        (b'{"t":1,"step":1}', "missing_field"),
        (b'{"t":1,"rank":0,"event":null}', "missing_field"),
        (b'{"t":"2026-01-01T00:00:00","step":1,"rank":0}', "bad_number"),
        (b'{"t":"NaN","step":1,"rank":0}', "bad_number"),
        (b'{"t":Infinity,"step":1,"rank":0}', "bad_number"),
        (b'{"t":1800000000000,"step":1,"rank":0}', "bad_number"),
        (b'{"t":1,"step":1.5,"rank":0}', "bad_number"),
        (b'{"t":1,"step":1,"rank":-1}', "bad_number"),
        (b'{"t":1,"step":1,"rank":true}', "bad_number"),
        (b'{"t":1,"step":1,"rank":0,"attempt":"x"}', "bad_number"),
        (b'{"t":1,"step":1,"rank":0,"attempt":100001}', "bad_number"),
        (b'{"t":1,"step":1,"rank":1048576}', "bad_number"),
        (b'{"t":1,"step":1,"rank":0,"note":\xff}', "not_json"),
        (b'{"t":1,"step":"NaN","rank":0}', "bad_number"),
    ],
)
def test_a_bad_line_is_counted_by_its_reason(line: bytes, reason: str) -> None:
    decoder = SignalDecoder()
    assert decoder.decode(line, "rank_00000.jsonl:3") is None
    assert decoder.bad_lines == {reason: 1}
    assert decoder.last_problem is not None
    assert decoder.last_problem.startswith(f"rank_00000.jsonl:3: {reason}")


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_fact_a_blank_or_counted(data: bytes) -> None:
    decoder = SignalDecoder()
    fact = decoder.decode(data)
    assert (fact is not None) or not data.strip() or decoder.bad_lines.total() == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda it: st.lists(it, max_size=3),
)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(["t", "step", "rank", "attempt", "event", "loss", "host", "x"]), _JSON)
)
def test_any_object_is_a_sound_fact_or_counted(content: dict[str, object]) -> None:
    decoder = SignalDecoder()
    fact = decoder.decode(json.dumps(content).encode())
    if fact is None:
        assert decoder.bad_lines.total() == 1
    else:
        assert math.isfinite(fact.t)
        assert fact.rank >= 0
        assert fact.attempt >= 0


@settings(deadline=None)
@given(
    t=st.floats(-1e10, 1e10),
    step=st.integers(0, 2**62),
    values=st.dictionaries(st.text(min_size=1, max_size=8), st.floats(allow_nan=False)),
)
def test_what_a_writer_writes_is_read_back(t: float, step: int, values: dict[str, float]) -> None:
    own = {
        key: value for key, value in values.items() if key not in {"t", "step", "rank", "attempt", "event"}
    }
    fact = step_of(json.dumps({"t": t, "step": step, "rank": 3, **own}).encode())
    assert (fact.t, fact.step, fact.rank, fact.values) == (t, step, 3, own)


@pytest.mark.parametrize(
    "message",
    [b"gr\xf6\xdfer", b"\\ud800", b"half a pair \\ud83d!"],
    ids=["latin-1", "surrogate", "half of an emoji"],
)
def test_an_exception_whose_message_is_no_text_is_told_all_the_same(message: bytes) -> None:
    """A file name in it may be any bytes; that the rank raised must not be lost for it."""
    decoder = SignalDecoder()
    line = b'{"t":1,"rank":2,"event":"exception","type":"OSError","message":"%b"}' % message
    event = decoder.decode(line, "rank_00002.jsonl:7")
    assert isinstance(event, Event)
    assert event.details["type"] == "OSError"
    assert "\N{REPLACEMENT CHARACTER}" in event.details["message"]
    event.details["message"].encode()
    assert decoder.bad_lines == {"not_utf8": 1}
    assert decoder.where == {"not_utf8": "rank_00002.jsonl:7"}


def test_a_world_that_no_job_has_is_left_out_of_its_run_start_and_counted() -> None:
    decoder = SignalDecoder()
    event = decoder.decode(b'{"t":1,"rank":0,"event":"run_start","world_size":1000000000,"pid":7}', "f:1")
    assert isinstance(event, Event)
    assert event.details == {"pid": 7}
    assert decoder.last_problem == "f:1: bad_value of world_size"


def test_a_file_of_a_rank_that_no_job_has_lends_no_rank() -> None:
    decoder = SignalDecoder()
    assert decoder.decode(b'{"t":1,"step":1}', rank=999_999_999) is None
    assert decoder.bad_lines == {"bad_number": 1}
