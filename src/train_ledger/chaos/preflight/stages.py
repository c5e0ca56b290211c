"""What does a rank do in each stage of the preflight's job, and what does it write down?

Each stage tells what it found under its own name, at once, so that a rank that is killed leaves what it knew
and finds it again when it is started anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from train_ledger.chaos.preflight.surroundings import dump_place, nics
from train_ledger.chaos.preflight.trainee import Trainee
from train_ledger.run_dir import write_atomically
from train_ledger.signals import flight

if TYPE_CHECKING:
    import torch

    from train_ledger.signals.monitor import Monitor

__all__ = ["SLOW_STEPS", "STAGES", "STEADY_STEPS", "Rank"]

STAGES = ("gpu", "bandwidth", "clocks", "restore", "kill", "layout", "steps", "slow", "trace", "tamper")
STEADY_STEPS = 100
SLOW_STEPS = 45
_WARM_UP_STEPS = 5
_SAVE_AT = 8
_ON_TO = 14
_SLOWER_S = 0.06
_TRACED_STEPS = 3


class Rank:
    """One rank, stage after stage, in a process group that is there.

    `load_s` is how long the clocks are watched under load. What it found stands in `folder`: the file
    rank_N.json, and the steps it took in steps_ATTEMPT.rank_N.jsonl.
    """

    def __init__(
        self,
        folder: Path,
        stages: Sequence[str],
        load_s: float,
        rank: int,
        device: torch.device,
        monitor: Monitor,
    ) -> None:
        import torch.distributed as dist

        self._folder, self._stages, self._load_s, self._rank = folder, stages, load_s, rank
        self._device, self._monitor = device, monitor
        self._culprit = dist.get_world_size() // 2
        self._restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
        self._step = 0
        self._told: dict[str, Any] = self._known()
        self._book = self._opened(self._restarts)
        self._trainee = Trainee(device, rank, monitor.phase)

    def _opened(self, attempt: int) -> TextIO:
        path = self._folder / f"steps_{attempt}.rank_{self._rank:05d}.jsonl"
        return path.open("w", encoding="utf-8")

    def _known(self) -> dict[str, Any]:
        """What this rank had found before it was started again."""
        path = self._folder / f"rank_{self._rank:05d}.json"
        return dict(json.loads(path.read_bytes())) if self._restarts and path.exists() else {}

    def _tell(self, **found: Any) -> None:
        self._told |= found
        data = json.dumps(self._told).encode()
        write_atomically(self._folder / f"rank_{self._rank:05d}.json", data, to_disk=True)

    def run(self) -> None:
        """Do the stages that are wanted, in the order of `STAGES`; started anew, from "restore" on."""
        import torch.distributed as dist

        self._tell(
            environment={
                "host": socket.gethostname(),
                "ranks": dist.get_world_size(),
                "backend": dist.get_backend(),
                "device": self._device.type,
                "restarts": self._restarts,
                "recorder": [[it.level, it.about, it.message] for it in flight.check(os.environ, self._rank)],
            }
        )
        if not self._restarts:
            self._tell(dump_place=dump_place(self._rank))
        for stage in STAGES if not self._restarts else STAGES[STAGES.index("restore") :]:
            if stage in self._stages:
                getattr(self, f"_do_{stage}")()

    def _do_gpu(self) -> None:
        if self._device.type == "cuda":
            from train_ledger.chaos.preflight.gpu import NvmlCard, TorchGpu, self_test

            card = NvmlCard(int(os.environ.get("LOCAL_RANK", "0")))
            self._tell(gpu=self_test(TorchGpu(self._device, card.pci), card))

    def _do_bandwidth(self) -> None:
        import torch.distributed as dist

        from train_ledger.chaos.preflight.bandwidth import measure as measure_bandwidth

        hosts: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(hosts, socket.gethostname())
        self._tell(bandwidth=measure_bandwidth(hosts, self._rank, self._device), nic_bytes_per_s=nics())

    def _do_clocks(self) -> None:
        if self._device.type == "cuda":
            from train_ledger.chaos.preflight.gpu import NvmlCard, TorchGpu, under_load

            card = NvmlCard(int(os.environ.get("LOCAL_RANK", "0")))
            self._tell(clocks=under_load(TorchGpu(self._device, card.pci), card, self._load_s))

    def _do_restore(self) -> None:
        """Save, go on, take up what was saved, and go the same way again.

        Between stands the death of every process where the stage "kill" is wanted, else fresh weights alone.
        """
        if not self._restarts:
            self._save()
        if not self._restarts and "kill" not in self._stages:
            self._trainee = Trainee(self._device, self._rank, self._monitor.phase)
            self._book.close()
            self._book = self._opened(1)
        if self._restarts or "kill" not in self._stages:
            self._take_up()

    def _save(self) -> None:
        from train_ledger.chaos.preflight import checkpoint

        self._train(_SAVE_AT)
        began = time.perf_counter()
        with self._monitor.checkpoint(self._step):
            checkpoint.save(self._trainee, self._place, self._step, self._device)
        self._tell(saved={"step": self._step, "seconds": time.perf_counter() - began, "loss": self._fixed()})
        self._train(_ON_TO - self._step)

    def _take_up(self) -> None:
        from train_ledger.chaos.preflight import checkpoint

        with self._monitor.checkpoint_load():
            self._step = checkpoint.load(self._trainee, self._place, self._device)
        taken_up_at = self._step
        self._train(_ON_TO - self._step)
        self._tell(taken_up={"step": taken_up_at, "restarts": self._restarts})

    @property
    def _place(self) -> Path:
        return self._folder / "checkpoint"

    def _do_kill(self) -> None:
        """One rank ends as by the kernel's hand; the launcher is to end the others and start all anew."""
        import torch.distributed as dist

        if self._restarts:
            return
        self._book.flush()
        self._monitor.logger.flush(1.0)
        dist.barrier()
        if self._rank == self._culprit:
            os.kill(os.getpid(), signal.SIGKILL)
        self._train(1000)  # waits for the one that is gone, until the launcher ends this rank

    def _do_layout(self) -> None:
        from train_ledger.chaos.preflight import checkpoint

        kept = checkpoint.weights(self._trainee)
        try:
            words = checkpoint.load_in_another_layout(self._trainee, self._place, self._device)
        except ValueError as error:
            self._tell(layout={"why_not": str(error)})
            return
        self._tell(layout={"words": words, "loss": self._fixed()})
        for name, parameter in self._trainee.model.named_parameters():
            parameter.detach().copy_(kept[f"model.{name}"])

    def _do_steps(self) -> None:
        self._train(_WARM_UP_STEPS)
        first = self._step + 1
        self._train(STEADY_STEPS)
        self._tell(steady={"first": first, "last": self._step})

    def _do_slow(self) -> None:
        self._trainee.slower_s = _SLOWER_S if self._rank == self._culprit else 0.0
        first = self._step + 1
        self._train(SLOW_STEPS)
        self._trainee.slower_s = 0.0
        self._tell(slow={"planted": self._culprit, "first": first, "last": self._step})

    def _do_trace(self) -> None:
        """A profile of a few steps on rank 0, in which the others take part."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if self._device.type == "cuda" else [])
        with profile(activities=kinds) if self._rank == 0 else contextlib.nullcontext() as profiler:
            for number in range(_TRACED_STEPS):
                with torch.profiler.record_function(f"ProfilerStep#{number}"):
                    self._trainee.step()
        if profiler is not None:
            path = self._folder / "trace_rank_0.json"
            profiler.export_chrome_trace(str(path))
            self._tell(trace=str(path))

    def _do_tamper(self) -> None:
        from train_ledger.chaos.preflight.tampering import tampered

        self._tell(tamper=tampered(self._trainee, self._culprit, self._device))

    def _train(self, steps: int) -> None:
        for _ in range(steps):
            loss, seen = self._trainee.step()
            self._step += 1
            self._monitor.step(self._step, loss=loss)
            line = {"step": self._step, "loss": loss.hex(), "data": seen}
            self._book.write(json.dumps(line) + "\n")
        self._book.flush()

    def _fixed(self) -> str:
        return self._trainee.fixed_loss().hex()
