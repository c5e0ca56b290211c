"""What is asked of a preflight?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["MEASURED", "OWN_ONLY", "STAGES_OF", "Wanted"]

MEASURED = "preflight/measured"
"""Below RUN: what the ranks of a cluster measured (`--as-rank`)."""

STAGES_OF: Mapping[str, tuple[str, ...]] = {
    "gpu": ("gpu",),
    "bandwidth": ("bandwidth",),
    "clocks": ("clocks",),
    "mfu": ("steps", "trace"),
    "restore": ("restore", "kill"),
    "layout": ("restore", "layout"),
    "faults": ("restore", "kill", "steps", "slow", "tamper"),
}
"""What the ranks of a job have to do for an item; `recorder` takes any job."""

OWN_ONLY = frozenset({"restore", "faults"})
"""Items for which processes are killed: on this machine, whatever the cluster has measured."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: the items' words, and what is known better than it can be found out.

    `ranks` None: one a GPU, else four. `code` is the folder of the training's scripts. `cluster_only` leaves
    out what this machine would do, as under a launcher of the user's own.
    """

    items: tuple[str, ...]
    ranks: int | None = None
    load_s: float = 300.0
    gemm_flops: float | None = None
    nominal_bytes_per_s: float | None = None
    ring: bool = False
    code: Path = field(default_factory=Path.cwd)
    cluster_only: bool = False
