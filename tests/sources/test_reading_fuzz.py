"""Nothing that stands in a log makes its reading fail, whatever happened to its lines."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from sources.mutated_lines import LINES, OWNED, mutated
from train_ledger.facts import Fault, Step
from train_ledger.render import fact_line
from train_ledger.sources import FactReader, read_facts

FAULTS = {
    "watchdog_timeout", "oom", "exception", "killed", "signal", "xid", "nccl_error", "desync",
    "nan_suspected", "checkpoint_failed",
}  # fmt: skip


def _is_sane(fact: object) -> None:
    assert isinstance(getattr(fact, "source", None), str)
    rank, step = fact.rank, fact.step  # type: ignore[attr-defined]
    assert rank is None or (isinstance(rank, int) and rank >= 0)
    assert step is None or isinstance(step, int)
    if isinstance(fact, Step):
        assert all(isinstance(it, float) for it in fact.values.values())
        assert not math.isinf(fact.t)
    if isinstance(fact, Fault):
        assert fact.fault in FAULTS
    told = json.loads(fact_line(fact))  # type: ignore[arg-type]
    assert told["source"] == fact.source  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(4))
def test_mutated_lines_of_all_formats_in_one_log(seed: int) -> None:
    reader = FactReader("train.log", written_t=1_775_000_000.0)
    lines = list(mutated(LINES, 1000, seed))
    for fact in [*reader.feed(b"".join(it + b"\n" for it in lines)), *reader.end()]:
        _is_sane(fact)
    assert reader.lines == len(lines)
    assert reader.lines_told > 100


@pytest.mark.parametrize(("name", "lines"), OWNED, ids=[name for name, _ in OWNED])
def test_mutated_files_of_one_format(name: str, lines: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / name
    for seed in range(3):
        head = "\n".join(lines).encode()
        path.write_bytes(b"\n".join([head, *mutated(lines, 200, seed)]) if seed else head)
        reading = read_facts([path])
        for fact in reading:
            _is_sane(fact)
        assert reading.files[0].formats, "the format was not recognised"


ODD = (None, True, 5, -1, 1e300, math.nan, 10**30, "x", "ValueError: x", "\ud800", [1], {"a": 1}, [], {})
KEYS = {
    "error.json": ("message",),
    "trainer_state.json": ("log_history", "global_step", "best_metric"),
    "stacks.json": ("thread_id", "frames", "pid", "active", "owns_gil"),
    "rank_1.jsonl": (
        *("type", "message", "number", "host", "exit_code", "pid", "fatal", "root", "victim", "what"),
        *("seq", "world_size"),
    ),
    "training.global_rank_0.1.jsonl": (
        *("log_type", "event_name", "value", "step", "rank", "source", "message", "seq_id", "tid", "pid"),
        *("task_name", "step_tags", "relative_step", "host_name", "global_rank"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_values_of_other_types_than_the_keys_have(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    for name, keys in KEYS.items():
        lines = [{key: chance.choice(ODD) for key in keys} for _ in range(6)]
        for line in lines:
            if name.startswith("rank"):
                line |= {
                    "t": 1.0,
                    "event": chance.choice(["exception", "signal", "ckpt_failed", "run_start"]),
                }
            elif name.startswith("training"):
                how = chance.choice(["start", "end", "error"])
                line |= {"time": 1.0, "log_type_name": f"{chance.choice(['step', 'checkpoint_save'])}_{how}"}
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines if name[-1] == "l" else lines[:1])))
    reading = read_facts([tmp_path])
    for fact in reading:
        _is_sane(fact)
    assert {Path(it.path).name for it in reading.files} == set(KEYS)
    assert reading.incidents.all
