"""Of the few entries that count the same is said as of all of them."""

from __future__ import annotations

import copy
import random
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hang.recorder import Job
from hang.test_damage import damage
from train_ledger.hang.dumps.dump import Dump, reduce_dump
from train_ledger.hang.dumps.essential import essentials


def any_job(chance: random.Random) -> Job:
    """Two kinds of groups; now and then a send, a coalesced operation, a queue that nobody finishes."""
    job = Job(4, backend=chance.choice(["nccl", "nccl", "rccl"]))
    job.group("1", [0, 1], "tp"), job.group("2", [0, 2], "dp")
    done = 1.0
    for _ in range(chance.randrange(120)):
        group = chance.choice(["0", "1", "2"])
        done = min(done, chance.choice([1.0] * 60 + [0.5, 0.0]))
        if chance.random() < 0.03:
            job.send(0, 1, group="1", done=chance.random() < done)
        else:
            job.issue(job.groups[group][1], group=group, done=chance.random() < done)
    if chance.random() < 0.2 and len(job.entries[0]) > 3:  # two entries of one operation
        at = chance.randrange(1, len(job.entries[0]))
        job.entries[0][at]["collective_seq_id"] = job.entries[0][at - 1]["collective_seq_id"]
    return job


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 60))
def test_the_same_is_said_as_of_all(seed: int) -> None:
    chance = random.Random(seed)
    job, ring = any_job(chance), chance.choice([None, 5, 40])
    active_only = chance.random() < 0.1

    def said() -> object:
        return reduce_dump(
            job.content(0, ring=ring, active_only=active_only), file="rank_0", rank=0, host=None
        )

    with mock.patch("train_ledger.hang.dumps.dump.essentials", return_value=None):
        of_all = said()
    assert said() == of_all


@settings(max_examples=500, deadline=None)
@example(855902)  # a record id that is none, of an operation that is pending
@example(3076)  # a record id that is none, where nothing is over and the ids tell what is missing
@given(st.integers(0, 1 << 60))
def test_what_is_not_understood_is_missed_only_where_it_does_not_count(seed: int) -> None:
    chance = random.Random(seed)
    content = copy.deepcopy(any_job(chance).content(0))
    entries = content["entries"]
    if not entries:
        return
    at = chance.randrange(len(entries))
    entries[at] = damage(entries[at], chance)

    def said() -> Dump | None:
        return reduce_dump(copy.deepcopy(content), file="rank_0", rank=0, host=None)

    quick = said()
    with mock.patch("train_ledger.hang.dumps.dump.essentials", return_value=None):
        of_all = said()
    if quick == of_all:
        return
    assert quick is not None
    assert of_all is not None
    assert (quick.cut, of_all.cut) == (None, f"1 of {len(entries)} entries not understood")
    assert pending_of(quick) == pending_of(of_all)


def pending_of(dump: Dump) -> dict[str, list[int]]:
    return {held.name: [op.seq for op in held.ops if not op.done] for held in dump.groups}


def test_few_of_many_count() -> None:
    job = Job(2)
    for _ in range(500):
        job.issue(range(2), done=True)
    job.issue([0])
    found = essentials(job.content(0)["entries"])
    assert found is not None
    assert [len(of_group) for of_group in found.values()] == [10]
