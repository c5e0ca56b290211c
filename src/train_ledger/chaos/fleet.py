"""What would the files of a large job look like, healthy or with a named fault?

Writes a whole run directory as the ranks of a job would have written it, without any job: the same files,
lines and order of events, the same every time for one seed. So everything that reads a run can be tried on a
thousand ranks in seconds. A fault is a short script of what happens to the job (`FAULTS`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from train_ledger.chaos.story import Plan, Story, encode, identity
from train_ledger.run_dir import RunDir, write_atomically

__all__ = ["FAULTS", "START_T", "Fleet", "write"]

START_T = 1_800_000_000.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """What was written: to be looked at at `t`, when the run is in `state`; nobody to blame: no culprits."""

    run_dir: RunDir
    world_size: int
    hosts: tuple[str, ...]
    t: float
    state: str
    culprits: tuple[int, ...] = ()
    fault_t: float | None = None


# -- what can happen to a job

Script = Callable[[Story], str]
"""Tells the story and says in which state the run is at its end."""


def _finishes(story: Story) -> str:
    story.start()
    story.steps(story.plan.steps)
    story.end()
    return "finished"


def _until_fault(story: Story) -> None:
    story.start()
    story.steps(story.plan.fault_step)
    story.fault_now()


def _hang(story: Story) -> str:
    """The culprit never comes out of its data loader; the others wait for it in the backward pass."""
    _until_fault(story)
    story.event("phase_start", [story.plan.culprit], phase="data")
    story.phase("data", 0.01, story.others)
    story.phase("forward", 0.01, story.others)
    story.event("phase_start", story.others, phase="backward")
    story.wait(_stall_s(story))
    return "stalled"


def _process_gone(story: Story) -> str:
    """The culprit is killed and cannot say so; the others wait for it."""
    _until_fault(story)
    story.event("phase_start", story.others, phase="backward")
    story.wait(_stall_s(story))
    return "stalled"


def _exception(story: Story) -> str:
    """The culprit raises, says so and ends; the others wait for it."""
    _until_fault(story)
    culprit = [story.plan.culprit]
    story.event("exception", culprit, type="RuntimeError", message="CUDA error: an illegal memory access")
    story.event("run_end", culprit)
    story.event("phase_start", story.others, phase="backward")
    story.wait(_stall_s(story))
    return "stalled"


def _nan(story: Story) -> str:
    _until_fault(story)
    story.steps(3, loss="NaN")
    story.steps(min(50, story.plan.steps))
    return "numeric_fault"


def _restart_loop(story: Story) -> str:
    """It dies at one step again and again, each time from the same checkpoint."""
    _until_fault(story)
    for _ in range(4):
        story.event("exception", type="RuntimeError", message="CUDA out of memory")
        story.restart(from_step=story.plan.fault_step // 2)
        story.steps(story.plan.fault_step - story.step)
    return "stopped"


def _restart(story: Story) -> str:
    """It dies once, is restarted and has not come back to the step that it had reached."""
    _until_fault(story)
    story.event(
        "exception", [story.plan.culprit], type="RuntimeError", message="NCCL error: remote process exited"
    )
    story.event("signal", story.others, number=15)
    story.restart(from_step=story.plan.fault_step // 2)
    story.steps(max(1, story.plan.fault_step // 4))
    return "recovering"


def _killed(story: Story) -> str:
    """The scheduler takes the job away."""
    _until_fault(story)
    story.event("signal", number=15)
    return "stopped"


def _checkpoint_failed(story: Story) -> str:
    _until_fault(story)
    story.save(error="OSError: [Errno 28] No space left on device")
    story.steps(2)
    return "running"


def _slow_rank(story: Story) -> str:
    """The culprit needs half as long again, so all do; it alone does not wait."""
    _until_fault(story)
    story.steps(max(1, story.plan.steps - story.plan.fault_step), slow=1.25, culprit_slow=1.5)
    return "running"


def _slow_all(story: Story) -> str:
    """From 12 s a step to 40 s, on all ranks at once."""
    _until_fault(story)
    story.steps(max(1, story.plan.steps - story.plan.fault_step), slow=40 / 12)
    return "running"


def _init_hang(story: Story) -> str:
    """Nobody gets through the set-up of communication."""
    story.start([])
    story.fault_now()
    for rank in story.ranks:
        story.event("run_start", [rank], world_size=story.plan.world_size, **identity(story, rank))
    story.event("phase_start", phase="start_up")
    story.wait(2000.0)
    return "stalled"


def _stall_s(story: Story) -> float:
    return 120.0 + 4 * story.plan.step_time_s


FAULTS: Mapping[str | None, tuple[Script, bool]] = {
    None: (_finishes, False),
    "hang": (_hang, True),
    "init_hang": (_init_hang, False),
    "process_gone": (_process_gone, True),
    "exception": (_exception, True),
    "nan": (_nan, False),
    "restart": (_restart, True),
    "restart_loop": (_restart_loop, False),
    "killed": (_killed, False),
    "checkpoint_failed": (_checkpoint_failed, False),
    "slow_rank": (_slow_rank, True),
    "slow_all": (_slow_all, False),
}
"""By name: what happens, and whether the culprit is to blame for it."""


def write(
    path: Path,
    *,
    hosts: int | Sequence[str] = 2,
    ranks_per_host: int = 8,
    steps: int = 100,
    step_time_s: float = 1.0,
    seed: int = 0,
    fault: str | None = None,
    culprit: int = 0,
    fault_step: int | None = None,
    checkpoint_every: int = 0,
    start_t: float = START_T,
    clock_offsets_s: Mapping[str, float] | None = None,
) -> Fleet:
    """Write the run directory `path` of a job of `hosts` × `ranks_per_host` ranks.

    The fault strikes after `fault_step` steps (half of `steps` unless said); `clock_offsets_s` sets single
    hosts' clocks ahead. Raises KeyError for a fault that is not in `FAULTS`.
    """
    names = (
        tuple(hosts) if not isinstance(hosts, int) else tuple(f"node{number:03d}" for number in range(hosts))
    )
    plan = Plan(
        hosts=names,
        ranks_per_host=ranks_per_host,
        steps=steps,
        step_time_s=step_time_s,
        seed=seed,
        culprit=culprit,
        fault_step=max(1, steps // 2) if fault_step is None else fault_step,
        checkpoint_every=checkpoint_every,
        start_t=start_t,
        clock_offsets_s=clock_offsets_s or {},
    )
    script, blames = FAULTS[fault]
    story = Story(plan, start_t)
    state = script(story)
    run_dir = RunDir(path)
    _write_files(run_dir, story)
    return Fleet(
        run_dir, plan.world_size, names, story.t, state, (culprit,) if blames else (), fault_t=story.fault_t
    )


def _write_files(run_dir: RunDir, story: Story) -> None:
    run_dir.signals.mkdir(parents=True, exist_ok=True)
    run = {
        "run": run_dir.path.name,
        "world_size": story.plan.world_size,
        "parallelism": {"dp": story.plan.world_size, "tp": 1, "pp": 1, "cp": 1, "ep": 1},
        "device": "NVIDIA H100 80GB HBM3",
        "gpu_price_per_hour": 2.5,
        "started": story.plan.start_t,
    }
    write_atomically(run_dir.run_json, msgspec.json.format(encode(run), indent=1) + b"\n")
    for rank, lines in story.lines.items():
        run_dir.signals_of(rank).write_bytes(b"".join(lines))
    ranks = [
        {"t": story.plan.start_t, "rank": rank, "attempt": story.attempt, **identity(story, rank)}
        for rank in story.ranks
    ]
    write_atomically(run_dir.ranks_jsonl, b"".join(encode(rank) + b"\n" for rank in ranks))
