"""Spans that overlap in any way are drawn as trees."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ops.traces import assert_nested
from train_ledger.ops.gantt.lanes import Lanes
from train_ledger.ops.gantt.step_parts import parts_of


class Drawn(dict[int, list[tuple[str, int, int]]]):
    def __call__(self, lane: int, name: str, start_us: int, end_us: int, args: str) -> None:
        self.setdefault(lane, []).append((name, start_us, end_us))


def test_what_is_nested_stands_on_one_line() -> None:
    drawn = Drawn()
    lanes = Lanes(drawn)
    for name, at_us in (("step", 0), ("forward", 2)):
        lanes.open(name, at_us, {})
    lanes.close("forward", 5, {})
    lanes.close("step", 9, {})
    assert drawn == {0: [("forward", 2, 5), ("step", 0, 9)]}


def test_what_overlaps_stands_on_two() -> None:
    drawn = Drawn()
    lanes = Lanes(drawn)
    lanes.open("rollout 1", 0, {})
    lanes.open("rollout 2", 3, {})
    lanes.close("rollout 1", 5, {})
    lanes.close("rollout 2", 9, {})
    assert drawn == {0: [("rollout 1", 0, 5)], 1: [("rollout 2", 3, 9)]}


def test_the_end_is_that_of_the_span_that_began_last() -> None:
    drawn = Drawn()
    lanes = Lanes(drawn)
    lanes.open("save", 0, {})
    lanes.open("save", 3, {})
    assert lanes.close("save", 5, {})
    assert not lanes.close("load", 6, {})
    assert lanes.close_all(8) == 1
    assert drawn == {0: [("save", 3, 5), ("save", 0, 8)]}


_MOVES = st.lists(
    st.tuples(st.booleans(), st.sampled_from("abcd"), st.integers(0, 6), st.integers(0, 12)), max_size=60
)


@given(_MOVES)
def test_however_spans_begin_and_end_each_line_is_a_tree(moves: list[tuple[bool, str, int, int]]) -> None:
    drawn = Drawn()
    lanes = Lanes(drawn)
    now, opened = 0, 0
    for opens, name, passed, late in moves:
        now += passed
        if opens:
            lanes.open(name, now - late, {})
            opened += 1
        else:
            lanes.close(name, now, {})
    lanes.close_all(now)
    assert sum(map(len, drawn.values())) + lanes.forgotten == opened
    for spans in drawn.values():
        assert_nested([(start, end) for _, start, end in spans])


def test_memory_is_that_of_the_open_spans() -> None:
    seen: defaultdict[str, int] = defaultdict(int)

    def count(lane: int, name: str, *_: Any) -> None:
        seen[name] += 1

    lanes = Lanes(count)
    lanes.open("run", 0, {})
    for n in range(20_000):
        lanes.open("step", 10 * n + 1, {})
        lanes.close("step", 10 * n + 8, {})
    for n in range(1000):
        lanes.open(f"never {n}", 10**7 + n, {})
    assert seen["step"] == 20_000
    assert len(lanes) <= 256
    assert lanes.forgotten == 1001 - 256


_SECONDS = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 5)


@given(
    st.dictionaries(
        st.sampled_from(
            ("data_wait_s", "fwd_s", "bwd_s", "opt_s", "ckpt_s", "gc_s", "comm_wait_s", "compute_s")
        ),
        _SECONDS,
    ),
    st.integers(0, 10_000_000),
)
def test_parts_lie_within_their_step_and_do_not_overlap(values: dict[str, float], length_us: int) -> None:
    parts = parts_of(values, 1000, 1000 + length_us)
    assert_nested([(1000, 1000 + length_us), *((it.start_us, it.end_us) for it in parts)])
    assert all(0 <= it.end_us - it.start_us <= round(it.seconds * 1e6) for it in parts)
