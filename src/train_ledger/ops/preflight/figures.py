"""What did the ranks of the preflight's job measure?

One JSON file a rank, `rank_00005.json`, written stage by stage by chaos.preflight.job; a stage that was not
done is absent. Beside it `steps_ATTEMPT.rank_00005.jsonl`: the loss and a checksum of the batch of each step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from train_ledger.ops.preflight.records import PreflightError
from train_ledger.run_dir import read_small

__all__ = [
    "Clocks",
    "DumpPlace",
    "Environment",
    "GpuTest",
    "Layout",
    "Link",
    "RankFigures",
    "Reading",
    "Saved",
    "Slowed",
    "Stretch",
    "TakenUp",
    "Tamper",
    "read_figures",
    "read_steps",
]

_RANK_FILE = re.compile(r"rank_(\d+)\.json\Z", re.ASCII)


class Environment(msgspec.Struct, frozen=True):
    """Where a rank ran; `recorder` is what its environment does to the recorder: level, variable, words."""

    host: str
    ranks: int
    backend: str
    device: str
    restarts: int = 0
    recorder: tuple[tuple[str, str, str], ...] = ()


class DumpPlace(msgspec.Struct, frozen=True):
    """Where torch dumps, before the rank; why this rank cannot write there; whose rank 0 does not see."""

    prefix: str
    error: str = ""
    unseen: tuple[int, ...] = ()


class GpuTest(msgspec.Struct, frozen=True):
    """One GPU's self-test; `peak_flops` is None where its model is not in the table."""

    name: str
    total_bytes: int
    memory_tested_bytes: int
    memory_wrong_bytes: int
    gemm_flops: float
    peak_flops: float | None = None
    xid: int | None = None


class Link(msgspec.Struct, frozen=True):
    """What a pair of neighbours reached: bus bandwidth in bytes/s, and whether the result was right."""

    pair: tuple[str, str]
    op: str
    bytes_per_s: float
    right: bool


class Reading(msgspec.Struct, frozen=True):
    """One look at a card under load: MHz, NVML's bits of reasons, °C; None where the driver does not tell."""

    sm_mhz: float | None = None
    max_mhz: float | None = None
    reasons: int | None = None
    temperature_c: float | None = None
    xid: int | None = None


class Clocks(msgspec.Struct, frozen=True):
    """The readings of some seconds under load."""

    seconds: float
    readings: tuple[Reading, ...]


class Saved(msgspec.Struct, frozen=True):
    """A checkpoint: after which step, how many seconds it took, the loss on the fixed batch as float.hex."""

    step: int
    seconds: float
    loss: str


class TakenUp(msgspec.Struct, frozen=True):
    """A checkpoint was loaded: the step it holds, and how often the launcher had restarted the ranks."""

    step: int
    restarts: int


class Layout(msgspec.Struct, frozen=True):
    """A checkpoint was read in another layout, or `why_not`."""

    words: str = ""
    loss: str | None = None
    why_not: str = ""


class Stretch(msgspec.Struct, frozen=True):
    """Steps from the first to the last."""

    first: int
    last: int


class Slowed(msgspec.Struct, frozen=True):
    """The rank that was made slow in steps from the first to the last."""

    planted: int
    first: int
    last: int


class Tamper(msgspec.Struct, frozen=True):
    """Where a gradient was changed, and which ranks' replicas stood out before and after."""

    planted: int
    before: tuple[int, ...]
    after: tuple[int, ...]


class RankFigures(msgspec.Struct, frozen=True):
    """All that one rank found; a stage that was not done is None."""

    environment: Environment
    dump_place: DumpPlace | None = None
    gpu: GpuTest | None = None
    bandwidth: tuple[Link, ...] | None = None
    nic_bytes_per_s: float | None = None
    clocks: Clocks | None = None
    saved: Saved | None = None
    taken_up: TakenUp | None = None
    layout: Layout | None = None
    steady: Stretch | None = None
    slow: Slowed | None = None
    trace: str | None = None
    tamper: Tamper | None = None


def read_figures(folder: Path) -> dict[int, RankFigures]:
    """Each rank's figures; {} where there are none. Raises PreflightError for a file that is none of ours."""
    found: dict[int, RankFigures] = {}
    for path in sorted(folder.glob("rank_*.json")):
        if match := _RANK_FILE.match(path.name):
            try:
                found[int(match[1])] = msgspec.json.decode(read_small(path), type=RankFigures)
            except (OSError, msgspec.MsgspecError) as error:
                raise PreflightError(f"{path}: {error}; remove the folder and measure again") from error
    return found


class _Line(msgspec.Struct, frozen=True):
    step: int
    loss: str
    data: int


def read_steps(
    folder: Path, attempt: int, ranks: Sequence[int]
) -> Mapping[int, Mapping[int, tuple[str, int]]]:
    """Of each rank the steps of that attempt with loss (float.hex) and checksum of the batch; {} if none.

    A last line that a killed rank did not finish is left out.
    """
    found: dict[int, dict[int, tuple[str, int]]] = {}
    for rank in ranks:
        path = folder / f"steps_{attempt}.rank_{rank:05d}.jsonl"
        try:
            lines = read_small(path).splitlines()
        except OSError:
            continue
        of_rank: dict[int, tuple[str, int]] = {}
        for line in lines:
            try:
                told = msgspec.json.decode(line, type=_Line)
            except msgspec.MsgspecError:
                continue
            of_rank[told.step] = told.loss, told.data
        found[rank] = of_rank
    return found
