"""Firings that one person sees to are one matter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.ops.weekly import Matter, firings_of, matters_of

from .journals import DAY_S, T, fired, resolved

WEEK = (T, T + 7 * DAY_S)


def _lasting(name: str, t: float, length_s: float, **labels: str) -> list[dict[str, object]]:
    return [fired(name, t, **labels), resolved(name, t + length_s, **labels)]


def _of(*entries: dict[str, object]) -> tuple[Matter, ...]:
    ordered = sorted(entries, key=lambda it: it["t"])  # type: ignore[arg-type,return-value]
    return matters_of(firings_of(ordered), *WEEK)


def test_a_host_is_one_matter_whatever_its_cards() -> None:
    (found,) = _of(
        *_lasting("GpuClockLow", T + 100, 600, host="node17", gpu="3", rank="27"),
        *_lasting("GpuClockLow", T + DAY_S, 1200, host="node17", gpu="5", rank="29"),
    )
    assert (found.host, found.times, found.lasted_s) == ("node17", 2, 1800)
    assert (found.gpus, found.ranks) == (("3", "5"), (27, 29))
    assert found.days == {"2027-01-16": 1, "2027-01-17": 1}
    assert not found.is_open


def test_what_lasted_longest_comes_first() -> None:
    found = _of(*_lasting("NicErrors", T, 60, host="a"), *_lasting("DataLoadingWait", T + 5, 6000))
    assert [it.name for it in found] == ["DataLoadingWait", "NicErrors"]


def test_one_that_lasts_still_counts_to_the_end_of_the_time() -> None:
    (found,) = _of(fired("DataLoadingWait", T + 6 * DAY_S))
    assert (found.is_open, found.lasted_s) == (True, DAY_S)


def test_one_that_began_before_counts_from_the_beginning_of_the_time() -> None:
    (found,) = _of(*_lasting("DataLoadingWait", T - 100, 150))
    assert (found.times, found.lasted_s) == (1, 50)


def test_more_than_in_the_week_before() -> None:
    start = fired("TrainingRestarting", T - 8 * DAY_S)
    before = _lasting("NicErrors", T - DAY_S, 10, host="a")
    now = [*_lasting("NicErrors", T + 5, 10, host="a"), *_lasting("NicErrors", T + 50, 10, host="a")]
    found = {it.name: it for it in _of(start, *before, *now)}
    assert (found["NicErrors"].before, found["NicErrors"].trend) == (1, "more")


def test_nothing_is_compared_with_a_week_that_was_not_watched() -> None:
    (found,) = _of(*_lasting("NicErrors", T + 5, 10, host="a"))
    assert (found.before, found.trend) == (None, "")


def test_what_another_alert_explained_is_no_matter() -> None:
    assert _of(fired("TrainingStepStalled", T, level="page", inhibited=True)) == ()


@given(st.lists(st.tuples(st.floats(-8, 8), st.floats(0, 3), st.sampled_from("ab")), max_size=20))
def test_no_time_is_longer_than_what_was_asked_about(lengths: list[tuple[float, float, str]]) -> None:
    entries = [
        entry
        for number, (day, length, host) in enumerate(lengths)
        for entry in _lasting("NicErrors", T + day * DAY_S, length * DAY_S, host=host, device=str(number))
    ]
    for found in _of(*entries):
        assert 0 <= found.lasted_s <= found.times * 7 * DAY_S
        assert sum(found.days.values()) == found.times
