"""A pause of all hosts that the step times leave out is one; a clock that jumps is that of one host."""

from __future__ import annotations

import pytest

from train_ledger.dash.backtest.pauses import with_pauses
from train_ledger.facts import Step

HOSTS = ("a", "a", "b", "b")


def told(late: dict[str, float], hosts: tuple[str, ...] = HOSTS) -> list[Step]:
    """Ranks that tell ten steps of 10 s, file by file; from the sixth on some hosts' times are later."""
    return [
        Step(
            10.0 * step + late.get(host, 0.0) * (step > 5),
            step,
            rank,
            host=host,
            values={"step_time_s": 10.0, "loss": 2.0},
        )
        for rank, host in enumerate(hosts)
        for step in range(1, 11)
    ]


def test_a_step_that_came_late_on_all_hosts_alike_took_as_long() -> None:
    facts = told({"a": 300.0, "b": 300.4})
    seen = [it for it in with_pauses(facts) if isinstance(it, Step)]
    took = {it.host: it.values["step_time_s"] for it in seen if it.step == 6}
    assert took == {"a": pytest.approx(310.0), "b": pytest.approx(310.4)}
    assert [it for it in seen if it.step != 6] == [it for it in facts if it.step != 6]
    assert all(it.values["loss"] == 2.0 for it in seen)


@pytest.mark.parametrize(
    ("late", "hosts"),
    [
        ({"a": 300.0}, HOSTS),
        ({"a": 300.0, "b": 120.0}, HOSTS),
        ({"a": -300.0, "b": -300.0}, HOSTS),
        ({"a": 3.0, "b": 3.0}, HOSTS),
        ({"a": 300.0}, ("a", "a")),
    ],
    ids=["one host", "each by another time", "back", "too little", "there is no other host"],
)
def test_anything_else_is_left_as_it_is(late: dict[str, float], hosts: tuple[str, ...]) -> None:
    facts = told(late, hosts)
    assert with_pauses(facts) == facts
