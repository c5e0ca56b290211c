"""Whom stacks alone make suspect, where the dumps name nobody."""

from __future__ import annotations

import json
import time
from pathlib import Path

from train_ledger.config import Config
from train_ledger.ledger import RunState
from train_ledger.ops.evidence import gather
from train_ledger.run_dir import RunDir

SITE = "/opt/venv/lib/python3.11/site-packages"
STEP = ("/job/train.py", 90, "train_step")
IN_ALL_REDUCE = [(f"{SITE}/torch/distributed/distributed_c10d.py", 3252, "all_reduce"), STEP]
AT_ITS_GPU = [("libtorch_cuda.so", 0, "at::native::_local_scalar_dense_cuda"), STEP]
IN_LOADER = [(f"{SITE}/torch/utils/data/dataloader.py", 1251, "_try_get_data"), STEP]


def odd(folder: Path, *stacks: list[tuple[str, int, str]]) -> tuple[int, ...]:
    run = RunDir(folder)
    run.stacks().mkdir()
    for rank, frames in enumerate(stacks):
        listed = [{"filename": file, "line": line, "name": name} for file, line, name in frames]
        thread = {"pid": 100 + rank, "thread_name": "MainThread", "frames": listed}
        (run.stacks() / f"rank_{rank}.json").write_text(json.dumps([thread]))
    return gather(run, Config(), RunState("r42", time.time(), world_size=len(stacks))).odd_ranks


def test_who_is_in_host_code_while_most_wait_is_the_odd_one(tmp_path: Path) -> None:
    assert odd(tmp_path, IN_ALL_REDUCE, IN_ALL_REDUCE, IN_LOADER) == (2,)


def test_who_stands_at_its_gpu_may_be_a_victim_and_is_not(tmp_path: Path) -> None:
    """Its queue may end in the collective that rank 3 never joins."""
    assert odd(tmp_path, IN_ALL_REDUCE, IN_ALL_REDUCE, IN_ALL_REDUCE, IN_LOADER, AT_ITS_GPU) == (3,)


def test_where_only_such_are_left_nobody_is_odd(tmp_path: Path) -> None:
    assert odd(tmp_path, IN_ALL_REDUCE, IN_ALL_REDUCE, AT_ITS_GPU) == ()


def test_the_empty_files_that_ranks_keep_open_are_not_missed(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.stacks().mkdir()
    for rank in range(2):
        (run.stacks() / f"rank_{rank}.txt").touch()
    (run.stacks() / "rank_1.json").touch()
    said = gather(run, Config(), RunState("r42", time.time(), world_size=2)).not_observed
    assert [line for line in said if "stacks" in line] == [f"{run.stacks() / 'rank_1.json'}: empty file"]
