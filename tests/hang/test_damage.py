"""Dumps whose bytes are whole but whose values make no sense: the answer is still an answer."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hang.recorder import Job, encoded
from train_ledger.answer import HangAnswer, to_json
from train_ledger.hang import analyse
from train_ledger.hang.analysis import reason
from train_ledger.hang.dumps.dump import Dump, reduce_dump
from train_ledger.hang.dumps.dump_files import Dumps

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


# What is not understood accuses nobody

Change = Callable[[dict[str, Any]], Any]


def rank_3_does_not_come(backend: str = "nccl") -> Job:
    made = Job(4, backend=backend)
    for _ in range(20):
        made.issue(range(4), done=True)
    made.issue([0, 1, 2])
    return made


def answer_with(made: Job, folder: Path, change: Change, *, rank: int = 1) -> HangAnswer:
    """The answer where one rank's dump was changed before it was written."""
    content = made.content(rank)
    change(content)
    made.write(folder)
    (folder / f"rank_{rank}").write_bytes(encoded(content, as_json=True))
    return analyse([folder])


def every_number(value: Any) -> Change:
    def change(content: dict[str, Any]) -> None:
        for entry in content["entries"]:
            entry["collective_seq_id"] = value

    return change


def last_number(value: Any) -> Change:
    def change(content: dict[str, Any]) -> None:
        content["entries"][-1]["collective_seq_id"] = value

    return change


def last_14_gone(content: dict[str, Any]) -> None:
    content["entries"][-14:] = [{}] * 14


CHANGES: dict[str, tuple[Change, str]] = {
    "nan": (last_number(float("nan")), "1 of 21 entries not understood"),
    "huge": (last_number(10**30), "1 of 21 entries not understood"),
    "negative": (last_number(-5), "1 of 21 entries not understood"),
    "all negative": (every_number(-5), "21 of 21 entries not understood"),
    "the end gone": (last_14_gone, "14 of 21 entries not understood"),
    "no group": (
        lambda content: content["entries"][-1].update(process_group=None, pg_id=None),
        "1 of 21 entries not understood",
    ),
    "no number of groups": (
        lambda content: content["pg_config"].update({"0": {"desc": "default_pg", "ranks": "[0, -1]"}}),
        "1 of 1 listed groups not understood",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_rank_whose_dump_is_not_understood_is_not_accused_with_the_culprit(
    tmp_path: Path, name: str
) -> None:
    change, why = CHANGES[name]
    answer = answer_with(rank_3_does_not_come(), tmp_path, change)
    assert answer.culprits == (3,)
    assert [(Path(it.file).name, it.why) for it in answer.unreadable] == [("rank_1", why)]
    assert (
        "dump of rank 1: read in part, so what does not show there may yet have been" in answer.not_observed
    )


def test_nor_is_the_one_who_may_be_the_culprit(tmp_path: Path) -> None:
    made = Job(4)
    for _ in range(20):
        made.issue(range(4), done=True)
    made.issue([0, 2, 3])
    answer = answer_with(made, tmp_path, last_14_gone)
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())
    assert any("whether rank 1 joined cannot be seen" in line for line in answer.not_observed)


def test_a_dump_of_which_nothing_is_understood_accuses_nobody(tmp_path: Path) -> None:
    folder = rank_3_does_not_come().write(tmp_path)
    (folder / "rank_1").write_text(json.dumps({"entries": [1, None, {}, []], "version": "2"}))
    answer = analyse([folder])
    assert answer.culprits == (3,)
    assert answer.unreadable[0].why == "4 of 4 entries not understood"


def test_nothing_pending_in_a_dump_read_in_part_is_not_no_hang(tmp_path: Path) -> None:
    made = Job(4)
    for _ in range(20):
        made.issue(range(4), done=True)
    assert answer_with(made, tmp_path, last_14_gone).verdict == "cannot_tell"


def test_a_gap_in_the_waiters_dump_does_not_make_another_ranks_gpu_stuck(tmp_path: Path) -> None:
    """Ranks 0 and 1 wait at 3; rank 0's dump lost its 2, so that it finished 2 is not known."""
    made = Job(2)
    made.issue(range(2), done=True)
    made.issue(range(2))
    made.issue(range(2))
    answer = answer_with(made, tmp_path, lambda content: content["entries"].__setitem__(1, {}), rank=0)
    assert answer.culprits == ()


def test_a_rank_whose_table_lists_other_members_is_not_missing_from_its_group(tmp_path: Path) -> None:
    made = rank_3_does_not_come()
    other = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 7]"}}
    answer = answer_with(made, tmp_path, lambda content: content.update(pg_config=other))
    assert 1 not in answer.culprits
    assert answer.culprits[:1] == (3,)


ALL_THAT_COUNTS = (
    "collective_seq_id",
    "process_group",
    "record_id",
    "state",
    "retired",
    "profiling_name",
    "is_p2p",
    "input_sizes",
    "input_dtypes",
    "time_created_ns",
    "time_discovered_completed_ns",
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["nccl", "gloo"]), st.integers(0, 1 << 60), st.integers(1, 6))
def test_an_entry_that_lost_a_value_never_adds_a_culprit(backend: str, seed: int, times: int) -> None:
    """Whichever entries of the innocent are struck out or made unlike any entry, they stay innocent."""
    chance = random.Random(seed)
    made = rank_3_does_not_come(backend)
    contents = [copy.deepcopy(made.content(rank)) for rank in range(4)]
    for _ in range(times):
        entries = contents[chance.randrange(3)]["entries"]
        at = chance.randrange(len(entries))
        wrong = chance.choice([-1, 1 << 70, 2.5, float("nan"), [5], {"a": 1}])
        key = chance.choice(ALL_THAT_COUNTS)
        entries[at] = chance.choice([wrong, {}, None, {**made.content(0)["entries"][at], key: wrong}])
    reduced = [reduce_dump(it, file="f", rank=rank, host=None) for rank, it in enumerate(contents)]
    answer = reason(Dumps(tuple(it for it in reduced if it)), stacks={}, known={}, world_size=4)
    assert set(answer.culprits) <= {3}
