"""Tables of a small job whose ranks tell everything, to be bent by each test."""

from __future__ import annotations

import numpy as np

from train_ledger.slow.table import Layout, StepTable
from train_ledger.slow.table.step_table import Marks

RANKS, STEPS = 8, 300


def noise(seed, shape, spread=0.005):
    return np.random.default_rng(seed).normal(0.0, spread, shape)


def healthy(ranks=RANKS, steps=STEPS, step_s=1.0, seed=0):
    """Seconds of each part, and counters, as arrays of ranks × steps."""
    shape = (ranks, steps)
    return {
        "compute_s": 0.8 * step_s * (1 + noise(seed, shape)),
        "data_wait_s": 0.002 * step_s * (1 + noise(seed + 1, shape)),
        "gc_s": np.zeros(shape),
        "log_s": np.full(shape, 0.0005),
        "transfer_s": 0.15 * step_s * (1 + noise(seed + 2, steps)),
        "stdout_bytes": np.cumsum(np.full(shape, 120.0), axis=1),
        "num_alloc_retries": np.zeros(shape),
        "num_device_alloc": np.full(shape, 100.0),
        "mem_inactive_split": np.full(shape, 1e9),
        "rss_bytes": np.full(shape, 9e9),
        "cpu_percent": np.full(shape, 100.0),
    }


def told(parts, *, uuid=False, hosts=2, world_size=None):
    """The table of a synchronous job: a step ends for all when the last has done its work."""
    parts = dict(parts)
    transfer_s = parts.pop("transfer_s")
    ranks, steps = parts["compute_s"].shape
    own_s = parts["compute_s"] + parts["data_wait_s"]
    step_s = own_s.max(axis=0) + transfer_s
    parts["step_time_s"] = np.broadcast_to(step_s, own_s.shape).copy()
    parts["comm_wait_s"] = step_s - own_s
    nothing = np.zeros(steps, dtype=bool)
    identities = {
        rank: {"host": f"node{rank * hosts // ranks}", "gpu": rank, "uuid": f"GPU-{rank}" if uuid else ""}
        for rank in range(ranks)
    }
    layout = Layout(world_size or ranks, {"dp": world_size or ranks}, identities)
    return StepTable(
        layout.places(range(ranks)),
        0,
        np.arange(1, steps + 1),
        np.broadcast_to(1.8e9 + np.cumsum(step_s), own_s.shape).copy(),
        parts,
        Marks(nothing, nothing, nothing, nothing, nothing),
        world_size=world_size or ranks,
    )
