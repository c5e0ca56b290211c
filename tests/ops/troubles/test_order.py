"""Which of several troubles came first, by what they say and by when they can have happened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.ops.troubles import FirstCause, Trouble, first_cause
from train_ledger.ops.troubles.lines import first_lines, victims_ruled_out


def cause(rank: int | None, t: float | None, said: str = "ValueError: no", **more) -> Trouble:
    return Trouble(
        "exception", said, "cause", t, more.pop("earliest_t", t), rank, source=f"a.log:{rank}", **more
    )


def victim(rank: int, t: float, kind: str = "nccl_error") -> Trouble:
    return Trouble(kind, "lost the connection to a peer", "victim", t, t, rank, source=f"b.log:{rank}")


def first_of(*troubles: Trouble, world: int = 8) -> FirstCause:
    found = first_cause(troubles, range(world))
    assert found is not None
    return found


def test_the_earlier_of_two_is_the_cause_and_the_other_is_told_after_it() -> None:
    found = first_of(cause(3, 100.0), cause(5, 90.0, "KeyError: x"))
    assert (found.ranks, [it.rank for it in found.later]) == ((5,), [3])


def test_what_is_closer_together_than_clocks_has_no_order() -> None:
    found = first_of(cause(3, 100.0), cause(5, 99.0, "KeyError: x"))
    assert (found.ranks, [it.rank for it in found.others]) == ((5,), [3])


def test_on_one_host_a_second_is_enough() -> None:
    found = first_of(cause(3, 100.0, host="n1"), cause(5, 99.0, "KeyError: x", host="n1"))
    assert (found.ranks, found.others) == ((5,), ())


def test_a_victim_is_none_however_early_its_line_is() -> None:
    found = first_of(victim(0, 10.0), cause(3, 100.0))
    assert (found.ranks, found.victims) == ((3,), (0,))
    assert [it.cause for it in victims_ruled_out(found)] == ["rank 0 as the cause"]


def test_what_came_after_the_watchdogs_gave_up_is_no_cause() -> None:
    late = cause(3, 100.0, "ValueError: at exit")
    assert first_cause([victim(0, 90.0, "watchdog_timeout"), late], range(8)) is None
    may_be_early = cause(3, 100.0, earliest_t=20.0)
    assert first_of(victim(0, 90.0, "watchdog_timeout"), may_be_early).ranks == (3,)


def test_whom_the_launcher_saw_first_goes_before_those_of_the_same_moment() -> None:
    found = first_of(cause(3, 100.0), cause(5, 100.5, "KeyError: x", is_root=True))
    assert found.ranks == (5,)


def test_ranks_that_ran_into_the_same_are_named_together_unless_they_are_all() -> None:
    some = [cause(rank, 100.0 + rank, f"KeyError: {rank}") for rank in (2, 6)]
    assert first_of(*some).ranks == (2, 6)
    every = [cause(rank, 100.0 + rank, f"KeyError: {rank}") for rank in range(8)]
    found = first_of(*every)
    assert (found.of_all, found.ranks) == (True, ())


def test_signs_count_where_nothing_tells_a_cause() -> None:
    sign = Trouble("nccl_error", "ncclSystemError: x", "sign", 5.0, 5.0, 1, source="a.log:1")
    found = first_of(sign, victim(0, 6.0))
    assert found.is_sign
    assert next(iter(first_lines(found))).startswith("first sign: rank 1: ncclSystemError")
    assert list(victims_ruled_out(found)) == []


def test_what_an_attempt_raised_comes_before_what_a_later_one_did() -> None:
    found = first_of(cause(3, 500.0), cause(0, 500.0, "OSError: in use", earliest_t=None, attempt=1))
    assert (found.ranks, found.others) == ((3,), ())


_TROUBLES = st.lists(
    st.builds(
        Trouble,
        kind=st.sampled_from(["exception", "oom", "killed", "watchdog_timeout", "nccl_error"]),
        said=st.sampled_from(["A: 1", "A: 2", "B: x"]),
        weight=st.sampled_from(["cause", "sign", "victim", "outside"]),
        t=st.none() | st.floats(0, 1000),
        earliest_t=st.none() | st.floats(0, 1000),
        rank=st.none() | st.integers(0, 7),
        source=st.just("a.log:1"),
    ),
    max_size=8,
)


@given(_TROUBLES)
def test_nobody_who_only_followed_is_ever_named(troubles: list[Trouble]) -> None:
    found = first_cause(troubles, range(8))
    if found is None:
        assert not [it for it in troubles if it.weight == "sign"]
        return
    named = {it.rank for it in troubles if it.weight in ("cause", "sign") and it.rank is not None}
    assert set(found.ranks) <= named
    assert not set(found.ranks) & set(found.victims)
    assert all(first_lines(found))
