"""What fired is paired with what was resolved."""

from __future__ import annotations

import pytest

from train_ledger.ops.weekly import firings_of

from .journals import T, fired, resolved


def test_one_that_is_over_and_one_that_lasts() -> None:
    entries = [
        fired("GpuClockLow", T, host="node17", gpu="3"),
        fired("DataLoadingWait", T + 10),
        resolved("GpuClockLow", T + 600, host="node17", gpu="3"),
    ]
    found = firings_of(entries).firings
    assert [(it.name, it.since_t, it.until_t) for it in found] == [
        ("GpuClockLow", T, T + 600),
        ("DataLoadingWait", T + 10, None),
    ]
    assert found[0].labels == {"run": "r42", "host": "node17", "gpu": "3"}


def test_one_that_was_inhibited_and_told_later_is_one_from_its_beginning_on() -> None:
    entries = [
        fired("TrainingStepStalled", T, level="page", inhibited=True),
        fired("TrainingStepStalled", T + 900, level="page"),
        resolved("TrainingStepStalled", T + 1000, level="page"),
    ]
    (found,) = firings_of(entries).firings
    assert (found.since_t, found.until_t, found.inhibited) == (T, T + 1000, False)


def test_the_same_alert_on_two_cards_is_two() -> None:
    entries = [fired("GpuClockLow", T, host="a", gpu=gpu) for gpu in "01"]
    assert len(firings_of(entries).firings) == 2


def test_an_end_without_a_beginning_is_nothing() -> None:
    assert firings_of([resolved("GpuClockLow", T)]).firings == ()


_ALERT = {"name": "NicErrors", "level": "record", "labels": {}, "fired_t": T, "summary": "", "value": 1}


@pytest.mark.parametrize(
    "transition",
    [
        None,
        5,
        {},
        {"kind": "fired"},
        {"kind": "fired", "alert": [], "t": 1},
        {"kind": "fired", "alert": _ALERT, "t": "NaN"},
        {"kind": "fired", "alert": _ALERT, "t": -1e300},
        {"kind": "fired", "alert": {**_ALERT, "labels": {"host": ["a"]}}, "t": T},
        {"kind": "fired", "alert": {**_ALERT, "fired_t": "1e400"}, "t": T},
        {"kind": "fired", "alert": {**_ALERT, "name": 5}, "t": T},
        {"kind": "fired", "alert": {**_ALERT, "level": []}, "t": T},
        {"kind": "fired", "alert": {**_ALERT, "summary": None}, "t": T},
    ],
)
def test_what_makes_no_sense_is_counted(transition: object) -> None:
    entries = [{"t": T, "kind": "alert_fired", "transition": transition}, fired("NicErrors", T, host="a")]
    found = firings_of(entries)
    assert (len(found.firings), found.unknown, found.first_t) == (1, 1, T)


def test_how_much_of_it_lies_in_a_time() -> None:
    (found,) = firings_of([fired("NicErrors", T), resolved("NicErrors", T + 100)]).firings
    assert found.seconds_in(T + 40, T + 1000) == 60
    assert found.seconds_in(T + 200, T + 300) == 0
    assert not found.touches(T + 200, T + 300)
    assert found.touches(T - 10, T + 1)
