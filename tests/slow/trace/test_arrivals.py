"""Who came last is told on corrected clocks, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from slow.trace.traces import Event, kernel, launch, step, write
from train_ledger.slow.trace.arrivals import Arrivals, arrivals
from train_ledger.slow.trace.breakdown import TraceError, breakdown
from train_ledger.slow.trace.reading.trace import read_trace

ALL_REDUCE = {"Collective name": "allreduce", "Process Group Name": "0", "In msg nelems": 1024}


def calls(late_us: list[float], *, ahead_us: float = 0, jitter_us: float = 0) -> list[Event]:
    """One all-reduce a millisecond, from when this rank came (later by `late_us`) to when all leave."""
    found = []
    for number, late in enumerate(late_us):
        begin, end = 1000 + 1000 * number, 1000 + 1000 * number + 500
        shake = jitter_us if number % 2 else -jitter_us
        found.append(
            kernel(
                begin + late + ahead_us + shake,
                end + ahead_us + shake,
                "ncclDevKernel_AllReduce",
                **ALL_REDUCE,
            )
        )
    return found


def found(tmp_path: Path, *ranks: list[Event]) -> Arrivals:
    traces = {
        rank: read_trace(write(tmp_path / f"{rank}.json", *events, rank=rank, world_size=len(ranks)))
        for rank, events in enumerate(ranks)
    }
    return arrivals(traces)


def test_the_rank_that_comes_last_although_another_clock_is_ahead(tmp_path: Path) -> None:
    late = [100.0] * 10
    told = found(tmp_path, calls(late), calls([0.0] * 10, ahead_us=3000))
    assert told.offset_ns[1] - told.offset_ns[0] == 3_000_000
    first, second = told.by_rank[0], told.by_rank[1]
    assert first is not None
    assert second is not None
    assert (first.last, first.caused_ns) == (10, 10 * 50_000), "half of it over the median of two"
    assert second.last == 0
    assert sum(end - start for start, end in second.waits.tolist()) == 10 * 100_000


def test_nobody_is_blamed_below_what_the_clocks_allow(tmp_path: Path) -> None:
    told = found(tmp_path, calls([5.0] * 10, jitter_us=20), calls([0.0] * 10), calls([0.0] * 10))
    assert told.uncertainty_ns > 0
    assert all(it is not None and it.last == 0 for it in told.by_rank.values())


def test_a_clock_that_was_set_in_between_makes_nobody_late(tmp_path: Path) -> None:
    on_time = [0.0, 9.0, 3.0, 6.0, 1.0, 8.0, 2.0, 7.0, 0.0, 5.0]
    for at, by_us in ((7, 300), (2, -300), (8, 3000)):
        set_back = [*calls(on_time)[:at], *calls(on_time, ahead_us=by_us)[at:]]
        told = found(tmp_path, set_back, calls(on_time), calls(on_time), calls(on_time))
        assert told.latest is None
        assert not any(len(it.waits) for it in told.by_rank.values() if it is not None)
    late = [300.0 if number % 2 else 0.0 for number in range(10)]
    told = found(tmp_path, set_back, calls(late), calls(on_time), calls(on_time))
    assert told.latest == 1, "by the collectives before the clock was set"


def test_a_rank_of_which_there_is_no_trace_may_have_come_last(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{it}.json", *calls([0.0] * 5), rank=it, world_size=4) for it in range(4)]
    said = "of 3 of 4 ranks: who came last may be one of the others"
    [told] = [it for it in breakdown(paths[:3]).degraded if it.why == said]
    assert told.file == f"{paths[0]} and 2 more", "names of a thousand files would hide what is said"
    assert said not in [it.why for it in breakdown(paths).degraded]


@pytest.mark.parametrize(
    ("ranks", "why"),
    [
        ([calls([0.0] * 9)], "at least two ranks"),
        ([calls([0.0] * 2), calls([0.0] * 2)], "too few"),
        ([calls([0.0] * 9), calls([0.0] * 8)], "too few"),
    ],
    ids=["one rank", "two collectives", "of which one rank recorded more"],
)
def test_cannot_tell(tmp_path: Path, ranks: list[list[Event]], why: str) -> None:
    told = found(tmp_path, *ranks)
    assert why in told.why
    assert set(told.by_rank.values()) == {None}


def test_waiting_for_a_rank_is_a_bucket_where_several_traces_are_given(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"rank{rank}.json", *calls([late] * 5), rank=None)
        for rank, late in enumerate([0.0, 200.0, 0.0])
    ]
    told = breakdown(paths)
    buckets = {rank: it.total.buckets_ns for rank, it in told.ranks.items()}
    assert [buckets[rank]["straggler"] for rank in range(3)] == [1_000_000, 0, 1_000_000]
    assert "straggler" not in told.held_by
    assert told.ranks[1].caused_ns == 1_000_000
    [alone] = breakdown(paths[:1]).ranks.values()
    assert alone.total.buckets_ns["straggler"] is None


def test_two_traces_of_one_rank_and_ranks_by_file_names(tmp_path: Path) -> None:
    one = write(tmp_path / "run.rank-3.json", kernel(1, 2), rank=None)
    assert list(breakdown([one]).ranks) == [3]
    other = write(tmp_path / "rank-4.json", kernel(1, 2), rank=3)
    assert [it.why for it in breakdown([other]).degraded if "its name" in it.why]
    with pytest.raises(TraceError, match=r"both are of rank 3"):
        breakdown([one, other])


def stepped(first: int, late_us: list[float], **more: object) -> list[Event]:
    """The same with a mark around each collective: step `first` and those after it."""
    events = []
    for number, event in enumerate(calls(late_us)):
        begin = 1000 + 1000 * number
        event["args"] |= {"correlation": number + 1, **more}
        events += [
            step(first + number, begin - 90, begin + 900),
            launch(begin - 80, begin - 79, number + 1),
            event,
        ]
    return events


def test_only_steps_that_all_ranks_recorded_are_compared(tmp_path: Path) -> None:
    told = found(tmp_path, stepped(10, [0.0] * 6), stepped(12, [0.0] * 6))
    assert told.collectives == 4
    assert told.offset_ns[0] - told.offset_ns[1] == 2_000_000, "by two steps, as if it were the clock"
    apart = found(tmp_path, stepped(10, [0.0] * 4), stepped(20, [0.0] * 4))
    assert "different steps" in apart.why


def test_numbers_of_the_group_tell_which_collective_is_which(tmp_path: Path) -> None:
    events = calls([0.0] * 6)
    for number, event in enumerate(events):
        event["args"] = {**event["args"], "Seq": number}
    assert found(tmp_path, events, events[2:]).collectives == 4


def test_clocks_are_known_over_groups_of_two(tmp_path: Path) -> None:
    ahead_us = [0.0, 3000.0, -2000.0, 500.0]
    ranks = []
    for rank, ahead in enumerate(ahead_us):
        events = []
        for group in ((0, 1), (1, 2), (2, 3)):
            if rank in group:
                made = calls([100.0 if rank == 2 else 0.0] * 5, ahead_us=ahead)
                events += [{**it, "args": {**it["args"], "Process Group Name": str(group)}} for it in made]
        ranks.append(events)
    told = found(tmp_path, *ranks)
    assert [told.offset_ns[rank] - told.offset_ns[0] for rank in range(4)] == [
        0,
        3_000_000,
        -2_000_000,
        500_000,
    ]
    assert told.latest == 2


def test_nobody_is_named_where_everybody_is_late_in_turn(tmp_path: Path) -> None:
    turns = [[100.0 if number % 3 == rank else 0.0 for number in range(12)] for rank in range(3)]
    told = found(tmp_path, *(calls(late) for late in turns))
    assert all(it is not None and it.caused_ns for it in told.by_rank.values())
    assert told.latest is None
