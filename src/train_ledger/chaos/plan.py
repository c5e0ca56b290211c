"""What is planted: which rank of what job leaves the common path, where and how?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from train_ledger.chaos.faults import MODES, Mode
from train_ledger.chaos.layout import GROUPS, Layout, LayoutError, layout_for, read_layout
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["Plan", "gpus_here", "plan_of"]

_DUMP_PATH_TIMEOUT_S = 30.0
_DRIVER = Path("/proc/driver/nvidia/gpus")
"""The driver's own list, a folder a GPU."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One planted hang; `layout` None is the plain data-parallel job, `timeout_s` None the job's own 600 s.

    With `no_dump_path` nobody tells torch where to write its dumps.
    """

    mode: str
    culprit: int
    ranks: int
    hang_at: int = 20
    group: str = "world"
    layout: Layout | None = None
    timeout_s: float | None = None
    no_dump_path: bool = False

    @property
    def fault(self) -> Mode:
        return MODES[self.mode]

    @property
    def backend(self) -> str:
        """What the job communicates by: NCCL where each rank of this host has a GPU, else gloo."""
        return "nccl" if gpus_here() >= self.ranks else "gloo"

    @property
    def does(self) -> str:
        """What the backend does with it: "hangs" or "aborts"."""
        return self.fault.on(self.backend)

    def in_words(self) -> str:
        """The plan in half a sentence."""
        where = "" if self.group == "world" else f" in its {self.group} group of {self.layout}"
        return f"at step {self.hang_at} rank {self.culprit} of {self.ranks} {self.fault.what}{where}"

    def command(self, run_dir: RunDir) -> list[str]:
        """What starts the job."""
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(self.ranks), "--log-dir", str(run_dir.logs), "--redirects", "3"]
        command += ["-m", "train_ledger.chaos.hang_drill", "--run-dir", str(run_dir.path)]
        return [*command, *self._options()]

    def _options(self) -> Iterator[str]:
        given = {
            "mode": self.mode,
            "culprit": self.culprit,
            "hang-at": self.hang_at,
            "group": self.group,
            "layout": self.layout,
            "timeout-s": self.timeout_s,
        }
        for name, value in given.items():
            if value is not None:
                yield from (f"--{name}", str(value))
        if self.fault.worker_server:
            yield "--worker-server"
        if self.no_dump_path:
            yield "--no-dump-path"


def plan_of(
    mode: str,
    culprit: int,
    ranks: int,
    *,
    hang_at: int = 20,
    group: str = "world",
    layout: str | None = None,
    timeout_s: float | None = None,
    no_dump_path: bool = False,
) -> Plan:
    """The plan that these options make; raises RunDirError with one line for options that do not go together.

    Where the mode or the group takes a job with several groups and no layout is given, one is chosen.
    """
    if mode not in MODES:
        raise RunDirError(f"--mode {mode} is not known; there are {', '.join(MODES)}")
    if not 0 <= culprit < ranks:
        raise RunDirError(f"--culprit {culprit} is not one of the {ranks} ranks (0 to {ranks - 1})")
    if group not in GROUPS:
        raise RunDirError(f"--group {group} is not known; there are {', '.join(GROUPS)}")
    if no_dump_path and timeout_s is None:
        timeout_s = _DUMP_PATH_TIMEOUT_S
    plan = Plan(mode, culprit, ranks, hang_at, group, None, timeout_s, no_dump_path)
    try:
        plan = replace(plan, layout=_layout(plan, layout))
    except LayoutError as error:
        raise RunDirError(str(error)) from error
    _check(plan)
    return plan


def _layout(plan: Plan, text: str | None) -> Layout | None:
    if text is not None:
        layout = read_layout(text)
        if layout.ranks != plan.ranks:
            raise LayoutError(f"--layout {text} is for {layout.ranks} ranks, and there are {plan.ranks}")
        return layout
    takes_groups = plan.fault.takes_groups or plan.group != "world"
    return layout_for(plan.ranks, plan.group) if takes_groups else None


def _check(plan: Plan) -> None:
    mode, layout = plan.fault, plan.layout
    if plan.ranks < mode.fewest_ranks:
        raise RunDirError(
            f"--mode {mode.name} needs {mode.fewest_ranks} ranks or more: fewer are no majority against one"
        )
    if layout is None:
        return
    size = layout.size_of(plan.group)
    if size < 2 or (mode.takes_groups and max(layout.dp, layout.tp) < 2):
        raise RunDirError(
            f"--layout {layout} has no group {plan.group} of two ranks or more; give another one"
        )
    if mode.by_majority and size == 2:
        _check_pair(plan)


def _check_pair(plan: Plan) -> None:
    """In a group of two it is one word against another, which two more groups of its kind settle."""
    if plan.does == "aborts":
        raise RunDirError(
            f"--mode {plan.mode} in a group of two ends the other over {plan.backend} before it can leave a "
            "dump, and nothing tells which of them was wrong: take the world, or a larger group"
        )
    if plan.ranks < 6:
        raise RunDirError(
            f"--mode {plan.mode} in a group of two is one word against another, which two more groups of its "
            f"kind settle: take 6 ranks or more, not {plan.ranks}"
        )


def gpus_here() -> int:
    """How many NVIDIA GPUs this process may use, without importing torch."""
    if not _DRIVER.is_dir():
        return 0  # the variable may be set on hosts without any
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([it for it in visible.split(",") if it.strip()])
    return len(list(_DRIVER.iterdir()))
