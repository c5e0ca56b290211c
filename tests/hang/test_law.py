"""One fault planted in a job of many dimensions that really waits: nobody else is ever named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hang.recorder import Job, answer_of
from hang.simulation import Cluster, Layout, programs, spoiled
from train_ledger.answer import HangAnswer

FAULTS = ("stop", "skip", "swap", "type", "size", "dtype", "stuck")


@dataclass(frozen=True)
class Planted:
    """What was done, and what can be seen of it.

    `voters` are the members of the spoiled group. `is_member` says that the dumps show the culprit to be a
    member of the groups in which it is waited for.
    """

    job: Job
    culprit: int
    hangs: bool
    voters: int
    is_member: bool


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    layout = Layout(draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 4])), draw(st.integers(1, 3)))
    assume(3 <= layout.world <= 32)
    return layout


@st.composite
def planted(draw: st.DrawFn, faults: tuple[str, ...] = FAULTS) -> Planted:
    layout = draw(layouts())
    fault = draw(st.sampled_from(faults))
    backend = "nccl" if fault == "stuck" else draw(st.sampled_from(["nccl", "gloo", "xccl"]))
    with_p2p = backend != "gloo" and draw(st.booleans())
    groups, todo = programs(layout, draw(st.integers(1, 4)), with_p2p=with_p2p)
    culprit = draw(st.integers(0, layout.world - 1))
    in_order = fault in ("stop", "skip", "swap")
    places = [place for place, step in enumerate(todo[culprit]) if in_order or step.peer is None]
    at = draw(st.sampled_from(places))
    here = todo[culprit][at]
    todo[culprit] = spoiled(todo[culprit], fault, at)
    ahead = 1 if backend == "gloo" else draw(st.sampled_from([1, 3, 12]))
    cluster = Cluster(layout.world, todo, ahead=ahead, stuck=(culprit, at) if fault == "stuck" else None)
    members = {"0": list(range(layout.world))} | {name: ranks for name, _, ranks in groups}
    cluster.run(members)
    job = cluster.job(groups, backend)
    recorded = {entry["process_group"][0] for entry in job.entries[culprit]}
    is_member = backend != "gloo" or recorded >= {name for name, ranks in members.items() if culprit in ranks}
    return Planted(job, culprit, cluster.hangs, len(members[here.group]), is_member)


def is_fair(answer: HangAnswer, case: Planted, without: set[int]) -> bool:
    """The planted one, nobody, a circle with it, or as a lead of low confidence a rank that left no dump."""
    named = set(answer.culprits)
    is_lead = answer.confidence == "low" and named <= without
    is_circle = answer.kind == "cycle" and case.culprit in named
    return named <= {case.culprit} or is_circle or is_lead


@settings(max_examples=80, deadline=None)
@given(planted(), st.sampled_from([{}, {"as_json": True}]))
def test_with_all_dumps_only_the_planted_rank_is_named(case: Planted, how: dict[str, Any]) -> None:
    answer = answer_of(case.job, **how)
    assert is_fair(answer, case, set())
    assert case.hangs or not answer.culprits
    assert answer.verdict != "no_hang" or not case.hangs


@settings(max_examples=80, deadline=None)
@given(planted(), st.data())
def test_with_less_than_all_still_only_the_planted_rank_is_named(case: Planted, data: st.DataObject) -> None:
    """Active entries alone, rings that have wrapped, dumps of innocents that are missing."""
    how = data.draw(st.sampled_from([{"active_only": True}, {"ring": 16}, {"ring": 30}, {}]))
    innocent = [rank for rank in range(case.job.world) if rank != case.culprit]
    without = set(data.draw(st.lists(st.sampled_from(innocent), max_size=case.job.world // 4)))
    answer = answer_of(case.job, [rank for rank in range(case.job.world) if rank not in without], **how)
    assert is_fair(answer, case, without)


@pytest.mark.parametrize("faults", [("stop",), ("stuck",)])
def test_a_host_or_a_gpu_that_stops_is_always_named(faults: tuple[str, ...]) -> None:
    @settings(max_examples=40, deadline=None)
    @given(planted(faults))
    def law(case: Planted) -> None:
        assume(case.is_member)
        answer = answer_of(case.job)
        assert answer.culprits == ((case.culprit,) if case.hangs else ())
        assert not case.hangs or case.culprit not in {
            it for them in answer.victims_of.values() for it in them
        }

    law()


@settings(max_examples=80, deadline=None)
@given(planted(("type", "size", "dtype")))
def test_what_differs_is_named_where_there_are_three_to_vote(case: Planted) -> None:
    assume(case.hangs and case.voters >= 3)
    assert answer_of(case.job).culprits == (case.culprit,)


@settings(max_examples=40, deadline=None)
@given(layouts(), st.sampled_from(["nccl", "gloo"]), st.integers(1, 12))
def test_a_healthy_job_hangs_nowhere(layout: Layout, backend: str, ahead: int) -> None:
    groups, todo = programs(layout, 2, with_p2p=backend == "nccl")
    cluster = Cluster(layout.world, todo, ahead=ahead)
    cluster.run({"0": list(range(layout.world))} | {name: ranks for name, _, ranks in groups})
    answer = answer_of(cluster.job(groups, backend))
    assert (answer.verdict, answer.culprits) == ("no_hang", ())
