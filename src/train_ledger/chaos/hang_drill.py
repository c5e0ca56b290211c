"""Does a real job that hangs get its culprit named?

A small language model trained by torchrun on this package's own source: over NCCL where every rank has a GPU,
else over gloo; data-parallel, or with --layout in three dimensions. After some healthy steps one rank leaves
the common path, in the world or at a collective of one of its groups. torchrun starts it:

    torchrun --standalone --nproc-per-node 4 -m train_ledger.chaos.hang_drill --run-dir RUN --mode skip
    torchrun --standalone --nproc-per-node 8 -m train_ledger.chaos.hang_drill --run-dir RUN --mode sleep \\
        --layout dp=2,tp=2,pp=2 --group tp --culprit 5 --timeout-s 60
"""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import train_ledger
from train_ledger.chaos.dump_place import DUMP_PATH_VARIABLES
from train_ledger.chaos.faults import MODES, Meeting, leave_common_path
from train_ledger.chaos.layout import GROUPS, Layout, read_layout
from train_ledger.chaos.plain_job import BATCH, CONTEXT, MODEL_FIGURES, PlainJob

if TYPE_CHECKING:
    import torch

    from train_ledger.chaos.sharded_job import ShardedJob

__all__ = ["Drill", "main", "train"]

_TIMEOUT_S = 600


class Drill:
    """When and where which rank leaves the common path; every other rank goes on as in any training."""

    def __init__(self, mode: str, culprit: int, hang_at: int, rank: int, group: str = "world") -> None:
        self._mode, self._group = MODES[mode], group
        self._leaves_at = hang_at if rank == culprit else None
        self._step = 0

    def fetches(self, step: int) -> bool:
        """Whether there is a batch for that step; the culprit may never return, or have none."""
        self._step = step
        if self._mode.in_loader and step == self._leaves_at:
            leave_common_path(self._mode.name, _IN_LOADER)
            return False
        return True

    def meet(self, group: str, meeting: Meeting) -> None:
        """Issue the collective – or leave the common path here."""
        if self._mode.in_loader or group != self._group or self._step != self._leaves_at:
            meeting.issue(meeting.tensor)
        else:
            self._leaves_at = None
            leave_common_path(self._mode.name, meeting)


_IN_LOADER = Meeting(lambda _: None, None, 0)


def main(arguments: list[str] | None = None) -> None:
    """Train as the options say; see `--help`."""
    train(_options(arguments))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True, help="run directory")
    parser.add_argument("--mode", choices=MODES, default="skip")
    parser.add_argument("--culprit", type=int, default=3, help="rank that leaves; -1: none")
    parser.add_argument("--hang-at", type=int, default=20, help="step at which it leaves")
    parser.add_argument(
        "--group", choices=GROUPS, default="world", help="group at whose collective it leaves"
    )
    parser.add_argument("--layout", type=read_layout, help="dp=2,tp=2,pp=2; without one, data-parallel alone")
    parser.add_argument("--timeout-s", type=float, default=_TIMEOUT_S, help="of the process groups")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--worker-server", action="store_true", help="start torch's own server on each rank")
    parser.add_argument("--no-dump-path", action="store_true", help="let torch dump where it would by itself")
    options = parser.parse_args(arguments)
    if options.layout is None and (options.group != "world" or MODES[options.mode].takes_groups):
        parser.error(f"--mode {options.mode} in the {options.group} group takes a --layout")
    return options


def train(options: argparse.Namespace) -> None:
    """Train until the drill's steps are done, with the three lines that any training needs."""
    rank = int(os.environ["RANK"])
    monitor = train_ledger.start(
        options.run_dir,
        model=MODEL_FIGURES,
        parallelism=_parallelism(options.layout),
        worker_server=options.worker_server,
    )
    if options.no_dump_path:
        for name in DUMP_PATH_VARIABLES:
            os.environ.pop(name, None)

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    device = _set_up(options.timeout_s)
    torch.manual_seed(0)
    job, replica = _job(options.layout, device, monitor.phase, rank)
    drill = Drill(options.mode, options.culprit, options.hang_at, rank, options.group)
    batches = _batches(replica, drill, device)
    step = 0

    while step < options.steps:
        step += 1
        with monitor.phase("data"):
            batch = next(batches, None)
        if batch is None:
            break
        loss = job.step(*batch, drill.meet)
        report = torch.tensor([loss, float(loss > 0)], device=device)
        peer = 1 if rank == 0 else 0
        drill.meet("world", Meeting(dist.all_reduce, report, peer, other=job.other))
        monitor.step(step, loss=report[0].item() / max(1.0, report[1].item()), tokens=BATCH * CONTEXT)
        dist.broadcast(torch.zeros(1, device=device), src=0)  # is a stop wanted? rank 0 is who would be told

    dist.barrier()  # before the evaluation
    dist.destroy_process_group()
    monitor.close()


def _parallelism(layout: Layout | None) -> dict[str, int] | None:
    return None if layout is None else {"dp": layout.dp, "tp": layout.tp, "pp": layout.pp}


def _set_up(timeout_s: float) -> torch.device:
    """The default process group, and the device of this rank."""
    import torch
    import torch.distributed as dist

    local_rank, local_ranks = (int(os.environ.get(it, "0")) for it in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    has_gpu = torch.cuda.is_available() and torch.cuda.device_count() >= max(local_ranks, 1)
    device = torch.device("cuda", local_rank) if has_gpu else torch.device("cpu")
    if has_gpu:
        torch.cuda.set_device(device)
    timeout = datetime.timedelta(seconds=timeout_s)
    dist.init_process_group("nccl" if has_gpu else "gloo", timeout=timeout)
    return device


def _job(
    layout: Layout | None, device: torch.device, phase: Callable[[str], Any], rank: int
) -> tuple[PlainJob | ShardedJob, int]:
    """What is trained, and which share of the data this rank trains on."""
    if layout is None:
        return PlainJob(device, phase), rank
    from train_ledger.chaos.sharded_job import ShardedJob

    job = ShardedJob(layout, device, phase)
    return job, job.replica


def _batches(replica: int, drill: Drill, device: torch.device) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    import torch

    text = b"".join(path.read_bytes() for path in sorted(Path(train_ledger.__file__).parent.rglob("*.py")))
    corpus = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    generator = torch.Generator().manual_seed(replica)
    step = 1
    while drill.fetches(step):
        starts = torch.randint(len(corpus) - CONTEXT - 1, (BATCH,), generator=generator)
        windows = torch.stack([corpus[start : start + CONTEXT + 1] for start in starts.tolist()])
        yield windows[:, :-1].to(device), windows[:, 1:].to(device)
        step += 1


if __name__ == "__main__":
    main()
