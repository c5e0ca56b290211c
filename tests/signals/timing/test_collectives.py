"""A rank's own work is told from its waiting, or nothing is said."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from signals.scripts import run_to_end, signal_lines
from train_ledger.hang.stacks.frames import parse_frame, user_frame
from train_ledger.signals.timing import work_clock
from train_ledger.signals.timing.collectives import Collectives

JOB = Path(__file__).with_name("gloo_job.py")


def steps_of(run: Path, how: str) -> dict[int, list[dict[str, Any]]]:
    """The step lines by rank, without the first steps, which warm up."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, str(JOB), str(run), how], check=True, env=environ, timeout=400)
    ranks = {}
    for rank in range(4):
        lines = (run / "signals" / f"rank_{rank:05d}.jsonl").read_text().splitlines()
        ranks[rank] = [line for line in map(json.loads, lines) if line.get("step", 0) > 2 and "loss" in line]
    return ranks


def median(lines: list[dict[str, Any]], field: str) -> float:
    return float(statistics.median(line[field] for line in lines))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["plain", "async", "ddp", "fsdp"])
def test_who_works_longer_is_singled_out_though_all_take_as_long(tmp_path: Path, how: str) -> None:
    ranks = steps_of(tmp_path, how)
    took = [median(lines, "step_time_s") for lines in ranks.values()]
    assert max(took) - min(took) < max(0.05, 0.2 * max(took))
    work = [median(lines, "compute_s") for lines in ranks.values()]
    waited = [median(lines, "comm_wait_s") for lines in ranks.values()]
    others = [value for rank, value in enumerate(work) if rank != 1]
    longer = work[1] - statistics.median(others)
    assert longer > 0.12, "of 0.2 s, and more where it had no core"
    assert max(others) - statistics.median(others) < longer / 2, "nobody else stands out"
    assert waited[1] == min(waited)
    for rank, lines in ranks.items():
        assert {line["compute_by"] for line in lines} == {"collective_wall"}
        parts = ("compute_s", "comm_wait_s", "data_wait_s")
        missing = [line["step_time_s"] - sum(line[part] for part in parts) for line in lines]
        assert abs(statistics.median(missing)) < 0.03, rank


@pytest.mark.slow
def test_nothing_is_said_where_collectives_go_past_python(tmp_path: Path) -> None:
    ranks = steps_of(tmp_path, "functional")
    for lines in ranks.values():
        assert len(lines) == 7
        assert not any("compute_s" in line or "comm_wait_s" in line or "compute_by" in line for line in lines)
    told = (tmp_path / "signals" / "rank_00000.jsonl").read_text()
    assert told.count("compute_s and comm_wait_s are left out") == 1


# -- in this process, with one rank


@pytest.fixture(autouse=True)
def every_step_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the steps of a test are."""
    monkeypatch.setattr(work_clock, "_SHARE", 1e9)


@pytest.fixture
def alone() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def collectives(alone: None) -> Iterator[Collectives]:
    made = Collectives(lambda about, message: None)
    made.step()
    yield made
    made.close()


def methods() -> dict[str, Any]:
    owners = (dist.ProcessGroup, dist.distributed_c10d.Work, torch._C.Future, torch.cuda.Stream)
    found = {f"{it.__name__}.{name}": value for it in owners for name, value in vars(it).items()}
    return {**found, "broadcast": dist._broadcast_coalesced}


def test_what_is_wrapped_is_put_back(alone: None) -> None:
    before = methods()
    made = Collectives(lambda about, message: None)
    made.look()
    assert methods() != before
    made.close()
    assert methods() == before
    dist.all_reduce(torch.ones(2))


def test_what_somebody_has_wrapped_since_stays(collectives: Collectives) -> None:
    ours = dist.ProcessGroup.allreduce

    def theirs(*arguments: Any, **options: Any) -> Any:
        return ours(*arguments, **options)

    stored = collectives._replaced._originals[0][2][0]
    dist.ProcessGroup.allreduce = theirs
    collectives.close()
    try:
        assert vars(dist.ProcessGroup)["allreduce"] is theirs
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [1.0, 1.0]
    finally:
        dist.ProcessGroup.allreduce = stored


def test_arguments_results_and_errors_pass(collectives: Collectives) -> None:
    tensor = torch.full((2,), 3.0)
    work = dist.all_reduce(tensor, op=dist.ReduceOp.MAX, async_op=True)
    assert work.wait() is True
    assert dist.ProcessGroup.allreduce.__name__ == "allreduce"
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        dist.group.WORLD.allreduce("no tensor")
    dist.all_reduce(tensor)
    assert collectives.step().keys() == {"compute_s", "comm_wait_s"}


def test_a_step_with_a_collective_that_nobody_saw_has_no_figures(collectives: Collectives) -> None:
    dist.all_reduce(torch.ones(2))
    assert "compute_s" in collectives.step()
    torch.ops._c10d_functional.wait_tensor(
        torch.ops._c10d_functional.all_reduce(torch.ones(2), "sum", dist.group.WORLD.group_name)
    )
    assert collectives.step() == {}
    dist.all_reduce(torch.ones(2))
    assert collectives.step() == {}, "it may have been waited for in this one"
    dist.all_reduce(torch.ones(2))
    assert "compute_s" in collectives.step()


def functional_all_reduce() -> None:
    torch.ops._c10d_functional.wait_tensor(
        torch.ops._c10d_functional.all_reduce(torch.ones(2), "sum", dist.group.WORLD.group_name)
    )


def test_one_that_nobody_saw_beside_those_of_a_reducer(collectives: Collectives) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    for _ in range(6):
        model(torch.ones(2, 4)).sum().backward()
        collectives.step()
    for with_another in (False, True):
        model(torch.ones(2, 4)).sum().backward()
        if with_another:
            functional_all_reduce()
        assert ("compute_s" in collectives.step()) is not with_another


def test_what_was_seen_earlier_explains_nothing_later(collectives: Collectives) -> None:
    for _ in range(5):
        dist.all_reduce(torch.ones(2))
    collectives.step()
    collectives.step()
    functional_all_reduce()
    assert collectives.step() == {}


def test_one_of_another_thread_is_nothing_to_be_sure_of(collectives: Collectives) -> None:
    collectives.step()
    beside = threading.Thread(target=dist.barrier)
    beside.start()
    beside.join()
    assert collectives.step() == {}


def test_steps_told_by_another_thread_than_the_one_that_trains(alone: None) -> None:
    made = Collectives(lambda about, message: None)
    found: list[dict[str, float]] = []
    try:
        for _ in range(4):
            dist.all_reduce(torch.ones(2))
            telling = threading.Thread(target=lambda: found.append(made.step()))
            telling.start()
            telling.join()
    finally:
        made.close()
    assert found == [{}] * 4


def test_a_step_in_which_a_group_is_made_has_no_figures(collectives: Collectives) -> None:
    collectives.step()
    group = dist.new_group([0])
    dist.barrier(group=group)
    assert collectives.step() == {}
    collectives.step()
    dist.barrier(group=group)
    assert "compute_s" in collectives.step()


def test_what_is_sent_and_received_is_seen(collectives: Collectives, monkeypatch: pytest.MonkeyPatch) -> None:
    group = dist.group.WORLD
    collectives.step()
    for counts in (True, False):  # as gloo does, and NCCL does not
        number = group._get_sequence_number_for_group()
        collectives._sequence.saw_pair(group)
        with monkeypatch.context() as patch:
            patch.setattr(dist.ProcessGroup, "_get_sequence_number_for_group", lambda _, n=number + counts: n)
            assert "compute_s" in collectives.step()
            collectives._sequence._last = {id(group): number}
    assert {"send", "recv", "recv_anysource"} <= {name for _, name, _ in collectives._replaced._originals}


def test_a_group_that_is_destroyed_is_not_kept() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    made = Collectives(lambda about, message: None)
    try:
        for _ in range(3):
            dist.all_reduce(torch.ones(2))
            made.step()
        group = weakref.ref(dist.group.WORLD)
        dist.destroy_process_group()
        gc.collect()
        assert group() is None
    finally:
        made.close()


def test_a_wait_that_ctrl_c_broke_off_hides_no_other(collectives: Collectives) -> None:
    collectives.step()
    collectives.clock.begin_wait()
    assert collectives.step() == {}
    work = dist.all_reduce(torch.ones(2), async_op=True)
    work.wait()
    assert collectives.clock._now is not None
    assert len(collectives.clock._now.waits) == 1


def test_a_phase_over_the_end_of_a_step_is_work_of_neither(
    collectives: Collectives, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [time.perf_counter()]
    monkeypatch.setattr("train_ledger.signals.timing.timeline.time.perf_counter", lambda: now_s[0])
    collectives.step()
    now_s[0] += 1.0
    collectives.clock.enter_apart()
    now_s[0] += 20.0
    assert collectives.step()["compute_s"] == pytest.approx(1.0)
    now_s[0] += 20.0
    collectives.clock.leave_apart()
    now_s[0] += 2.0
    assert collectives.step()["compute_s"] == pytest.approx(2.0)


def test_a_model_made_before_is_watched_when_it_is_told_of(alone: None) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    made = Collectives(lambda about, message: None)

    def figures() -> dict[str, float]:
        model(torch.ones(2, 4)).sum().backward()
        return made.step()

    try:
        made.step()
        assert figures() == {}
        made.watch(model)
        made.watch(model)
        made.watch("no model")
        found = [figures() for _ in range(4)]
        assert found[-1].keys() == {"compute_s", "comm_wait_s"}
        assert len(made._data_parallel._of_models) == 1
    finally:
        made.close()


def test_a_model_that_is_gone_is_not_kept(collectives: Collectives) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    assert len(collectives._data_parallel._of_models) == 1
    del model
    gc.collect()
    assert collectives._data_parallel._of_models == {}


def test_a_compiled_step_is_compiled_as_before(collectives: Collectives) -> None:
    @torch.compile(backend="eager", fullgraph=True)
    def step(tensor: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(tensor)
        return tensor * 2

    assert step(torch.ones(2)).tolist() == [2.0, 2.0]


def test_a_compiled_model_with_buffers_trains_as_before(collectives: Collectives) -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    model = torch.nn.parallel.DistributedDataParallel(layers)
    compiled = torch.compile(model, backend="eager")
    for _ in range(6):
        compiled(torch.ones(2, 4)).sum().backward()
        found = collectives.step()
    assert found.keys() == {"compute_s", "comm_wait_s"}


def test_without_a_process_group_there_is_nothing_to_say() -> None:
    made = Collectives(lambda about, message: None)
    assert made.step() == {}
    assert made.step() == {}
    made.close()


def test_a_frame_of_ours_is_not_the_users() -> None:
    frames = [
        parse_frame("/job/lib/train_ledger/signals/collectives.py:152 issue"),
        parse_frame(
            "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:3245 all_reduce"
        ),
        parse_frame("/job/train.py:88 reduce_gradients"),
    ]
    assert str(user_frame(frames)) == "train.py:88 reduce_gradients"


def test_start_before_torch_is_imported(tmp_path: Path) -> None:
    script = """
import time
import torch, torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
monitor._collectives.look()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
for step in range(4):
    model(torch.ones(2, 4)).sum().backward()
    time.sleep(0.3)  # of steps this long each is measured, however busy the machine
    monitor.step(step)
monitor.close()
"""
    assert run_to_end(tmp_path, script).returncode == 0
    lines = [line for line in signal_lines(tmp_path) if "gc_s" in line]
    assert ["compute_s" in line for line in lines] == [False, False, False, True], (
        "the reducer looks at its buckets anew in the second step, and waits where nobody sees it"
    )
