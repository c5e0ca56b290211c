"""Facts that follow each other are one where they say one thing; none is lost, none changes its place."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.sources.reading.succession import Succession


def joined(*facts: Fact) -> list[Fact]:
    succession = Succession()
    return [*(it for fact in facts for it in succession.add(fact)), *succession.settle()]


def step(
    number: int, rank: int | None = 0, *, t: float = math.nan, attempt: int = 0, **values: float
) -> Step:
    return Step(t, number, rank, attempt, source=f"a:{number}", values=values)


def test_one_step_told_twice_has_the_values_of_both() -> None:
    (one,) = joined(step(1, loss=2.5), step(1, t=7.0, grad_norm=1.0, loss=2.51))
    assert isinstance(one, Step)
    assert (one.t, one.values) == (7.0, {"loss": 2.51, "grad_norm": 1.0})


def test_who_does_the_skipping_has_counted_more_than_who_looks_on() -> None:
    for pair in ((1585.0, 0.0), (0.0, 1585.0)):
        (one,) = joined(*(step(1, skipped=it) for it in pair))
        assert isinstance(one, Step)
        assert one.values == {"skipped": 1585.0}


def test_steps_of_other_ranks_and_attempts_are_others() -> None:
    facts = [step(1, 1), step(1, 2), step(1, 1, attempt=1), step(2, 1, attempt=1)]
    assert joined(*facts) == facts


def test_what_rank_0_and_nobody_say_is_of_the_job() -> None:
    (one,) = joined(step(1, 0, lr=0.1), step(1, None, loss=2.5))
    assert (one.rank, isinstance(one, Step) and one.values) == (None, {"lr": 0.1, "loss": 2.5})
    assert len(joined(step(1, 3, lr=0.1), step(1, None, loss=2.5))) == 2


def test_a_fault_is_told_once_but_an_xid_every_time() -> None:
    def xid(t: float | None) -> Fault:
        return Fault(t, "xid", host="n1", details={"pci": "0000:3b:00", "code": 79, "text": "gone"})

    oom = Fault(None, "oom", 3, details={"message": "m"})
    assert joined(oom, oom) == [oom]
    assert len(joined(xid(None), xid(None))) == 2
    assert len(joined(xid(1.0), xid(2.0), xid(2.0))) == 2


def test_an_error_or_timeout_that_turns_out_an_error_is_one_error() -> None:
    work = {"what": "failure", "seq": 64, "group": "0"}
    failure = Fault(1.0, "watchdog_timeout", 3, source="a:1", details=work)
    error = Fault(1.5, "nccl_error", 3, source="a:2", details={"message": "remote process exited"})
    (one,) = joined(failure, error)
    assert isinstance(one, Fault)
    assert (one.fault, one.t, one.details) == ("nccl_error", 1.0, {**work, **error.details})
    timeout = Fault(1.0, "watchdog_timeout", 3, source="a:1", details={**work, "what": "timeout"})
    assert joined(timeout, error) == [timeout, error]


def test_two_readers_of_one_line_tell_one_fault() -> None:
    first = Fault(None, "nccl_error", 0, source="a:1", details={"what": "peer_gone"})
    second = Fault(5.0, "nccl_error", 0, source="a:1", details={"type": "RuntimeError"})
    (one,) = joined(first, second)
    assert (one.t, one.source) == (5.0, "a:1")
    assert isinstance(one, Fault)
    assert one.details == {"what": "peer_gone", "type": "RuntimeError"}


@given(
    st.lists(
        st.tuples(st.sampled_from("se"), st.integers(0, 300), st.sampled_from([None, 0, 1])), max_size=300
    )
)
def test_order_is_kept_and_no_step_is_lost(told: list[tuple[str, int, int | None]]) -> None:
    facts: list[Fact] = [
        Step(math.nan, number, rank, source=str(place))
        if kind == "s"
        else Event(math.nan, "e", rank, source=str(place))
        for place, (kind, number, rank) in enumerate(told)
    ]
    out = joined(*facts)
    places = [int(it.source) for it in out]
    assert places == sorted(set(places))
    assert {it.step for it in out if isinstance(it, Step)} == {
        it.step for it in facts if isinstance(it, Step)
    }
    assert sum(isinstance(it, Event) for it in out) == sum(isinstance(it, Event) for it in facts)
