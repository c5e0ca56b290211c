"""The quick look at all entries together says yes to no entry that, asked by itself, is not understood.

Tensors are not looked at; those of the entries that are kept are asked themselves.
"""

from __future__ import annotations

import copy
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hang.recorder import Job, encoded
from hang.test_damage import damage, job
from train_ledger.hang.dumps.dump import reduce_dump
from train_ledger.hang.dumps.schema import are_ordinary
from train_ledger.hang.dumps.understood import is_understood

TENSORS = ("input_sizes", "output_sizes", "input_dtypes", "output_dtypes")


@pytest.mark.parametrize("backend", ["nccl", "gloo", "xccl"])
def test_what_recorders_write_is_ordinary(backend: str) -> None:
    content = job(backend).content(0)
    assert are_ordinary(content["entries"])
    assert are_ordinary(json.loads(encoded(content, as_json=True))["entries"])


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 1 << 60), st.booleans())
def test_it_says_yes_only_where_every_entry_is_understood(seed: int, as_json: bool) -> None:
    chance = random.Random(seed)
    made = Job(2)
    for _ in range(4):
        made.issue(range(2), done=True)
    content = copy.deepcopy(made.content(0))
    entries = json.loads(encoded(content, as_json=True))["entries"] if as_json else content["entries"]
    at = chance.randrange(4)
    entries[at] = damage(entries[at], chance)
    apart_from_tensors = [
        {key: it[key] for key in it if key not in TENSORS} for it in entries if isinstance(it, dict)
    ]
    assert not are_ordinary(entries) or all(map(is_understood, apart_from_tensors))


def test_sizes_that_cannot_be_matter_where_they_are_kept() -> None:
    made = Job(2)
    for _ in range(100):
        made.issue(range(2), done=True)
    old, new = copy.deepcopy(made.content(0)), copy.deepcopy(made.content(0))
    old["entries"][3] = {**old["entries"][3], "input_sizes": [["four"]]}
    new["entries"][-1] = {**new["entries"][-1], "input_sizes": [["four"]]}
    dumps = [reduce_dump(content, file="rank_0", rank=0, host=None) for content in (old, new)]
    assert [dump and dump.cut for dump in dumps] == [None, "1 of 100 entries not understood"]
