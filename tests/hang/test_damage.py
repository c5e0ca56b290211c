"""Dumps whose bytes are whole but whose values make no sense: the answer is still an answer."""

from __future__ import annotations

import copy
import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from hang.recorder import Job
from train_ledger.answer import to_json
from train_ledger.hang.analysis import reason
from train_ledger.hang.dump import Dump, reduce_dump
from train_ledger.hang.dump_files import Dumps

WRONG: list[Any] = [
    None,
    -1,
    0,
    3,
    1 << 70,
    2.5,
    float("nan"),
    "",
    "x",
    "\ud800",
    "7",
    [],
    {},
    (),
    ("a", "b"),
    True,
]


def job(backend: str) -> Job:
    """Collectives in two groups, sends and receives, one rank missing."""
    job = Job(4, backend=backend)
    job.group("pp", [3, 1, 0], "pipeline")
    for _ in range(3):
        job.issue(range(4), done=True)
        job.issue([3, 1, 0], "all_gather", group="pp", done=True)
    job.send(1, 3, group="pp", sides="recv")
    job.send(0, 1, group="pp")
    job.receive_from_any(0, group="pp")
    job.issue([0, 1], "all_to_all")
    job.issue([3], "all_to_all", size=[[2], [3]])
    return job


def damage(value: Any, chance: random.Random) -> Any:
    """One value somewhere inside replaced, removed, or put where another was."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            value.pop(key)
        else:
            value[key] = damage(value[key], chance)
        return value
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        value[at] = damage(value[at], chance)
        return value
    return copy.deepcopy(chance.choice(WRONG))


def carried_over(dump: Dump) -> Dump:
    """As it comes from the worker."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(dump), type=Dump)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(["nccl", "gloo", "xccl"]), st.integers(0, 1 << 60), st.integers(1, 12))
def test_values_that_make_no_sense_never_raise(backend: str, seed: int, times: int) -> None:
    chance = random.Random(seed)
    made = copy.deepcopy(job(backend))
    contents = [made.content(rank, active_only=seed % 3 == 0) for rank in range(4)]
    for _ in range(times):
        at = chance.randrange(4)
        contents[at] = damage(contents[at], chance)
    reduced = [reduce_dump(it, file="f", rank=rank, host=None) for rank, it in enumerate(contents)]
    dumps = tuple(carried_over(dump) for dump in reduced if dump)
    answer = reason(Dumps(dumps), stacks={}, known={}, world_size=4)
    assert answer.verdict in ("hang", "no_hang", "cannot_tell")
    assert not {rank for ranks in answer.victims_of.values() for rank in ranks} & set(answer.culprits)
    to_json(answer)
