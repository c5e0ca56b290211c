"""What can come out of an expression follows from what goes in."""

from __future__ import annotations

import pytest

from train_ledger.ops.lint.alive import Lack, life_of
from train_ledger.ops.lint.promql import parsed

SERIES = {
    "step": frozenset({"run", "rank"}),
    "clock": frozenset({"run"}),
    "info": frozenset({"run", "rank", "host", "uuid"}),
    "dcgm": frozenset({"gpu", "UUID", "hostname"}),
    "xid": None,
}


@pytest.mark.parametrize(
    ("promql", "lacks"),
    [
        ("step", []),
        ("step > 3 or gone > 3", [Lack("gone")]),
        ("absent(gone)", []),
        ("step unless on (run) gone", [Lack("gone")]),
        ("time() - step > 90", []),
        ('xid{code="79"} > 0', []),
        ('step{rank=~".*"}', []),
        ('step{host=""}', []),
        ('{__name__=~"(step|clock)",run="r42"}', []),
        ('label_replace(dcgm, "uuid", "$1", "UUID", "(.+)") * on (uuid) group_left (run) info', []),
        ("step + on (instance) group_left () max by (instance) (clock)", []),
    ],
)
def test_alive(promql: str, lacks: list[Lack]) -> None:
    life = life_of(parsed(promql), SERIES)
    assert life.is_alive
    assert list(life.lacks) == lacks


@pytest.mark.parametrize(
    ("promql", "lack"),
    [
        ("rate(gone[5m]) > 0", Lack("gone")),
        ("step and on (run) gone", Lack("gone")),
        ("step / gone", Lack("gone")),
        ("gone unless step", Lack("gone")),
        ('step{host="n0"}', Lack("step", "host")),
        ("dcgm * on (uuid) group_left (run) info", Lack("dcgm", "uuid")),
        ('dcgm{Hostname!=""}', Lack("dcgm", "Hostname")),
    ],
)
def test_dead_and_for_want_of_what(promql: str, lack: Lack) -> None:
    life = life_of(parsed(promql), SERIES)
    assert not life.is_alive
    assert lack in life.lacks


@pytest.mark.parametrize(
    ("promql", "labels"),
    [
        ("max by (run) (step)", {"run"}),
        ("max without (rank) (step)", {"run", "job", "instance"}),
        ("step * on (run) clock", {"run"}),
        ("step * on (run) group_left () clock", {"run", "rank", "job", "instance"}),
        ("clock * on (run) group_right () step", {"run", "rank", "job", "instance"}),
        ("max by (run) (clock) * on (run) group_left (host) max by (run, host) (info)", {"run", "host"}),
        ("1 - max by (run) (clock)", {"run"}),
        ("max by (run) (clock) or max by (rank) (step)", {"run", "rank"}),
        ("sum(step)", set()),
    ],
)
def test_the_labels_that_are_left(promql: str, labels: set[str]) -> None:
    assert life_of(parsed(promql), SERIES).labels == labels


def test_grouping_by_a_label_that_is_not_there_is_told() -> None:
    assert life_of(parsed("max by (run, Hostname) (step)"), SERIES).lacks == (Lack("step", "Hostname"),)
