"""Which dumps does a large NCCL job leave, of which one rank went to sleep?

Groups of eight ranks (TP) and groups across them (DP). Each step has four all-reduces in the former and one
reduce-scatter in the latter. Rank 3 never comes to the last all-reduce of its TP group: its seven peers wait
there, everybody else waits for one of the eight in a DP group. The ring has wrapped.

The bytes are those of torch's own pickler: protocol 2, strings and frames noted once, nothing else noted. A
few files are composed; those of the other ranks differ in names and members alone, which are put in.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["CULPRIT", "write_dumps"]

CULPRIT = 3
TP = 8
FIRST_RECORD = 86_000
T0_NS = 1_758_610_505_000_000_000
STACKS = [
    [{"name": f"{call}_{depth}", "filename": f"/job/{call}.py", "line": 10 + depth} for depth in range(24)]
    for call in ("backward", "forward", "optimizer", "loss", "embedding")
]


def write_dumps(folder: Path, ranks: int, entries: int, *, frames: bool = False) -> int:
    """One file a rank, rank_0 and so on; gives back the bytes written."""
    late = {"culprit": 2, "peer": 1, "other": 0}
    templates = {
        role: _torch_pickle(_content(entries - missing, role != "culprit", frames, ranks // TP))
        for role, missing in late.items()
    }
    total = 0
    for rank in range(ranks):
        role = "culprit" if rank == CULPRIT else "peer" if rank < TP else "other"
        data = templates[role]
        for mark, value in _names(rank, ranks):
            data = data.replace(_unicode(mark), _unicode(value))
        (folder / f"rank_{rank}").write_bytes(data)
        total += len(data)
    return total


def _names(rank: int, ranks: int) -> Iterator[tuple[str, str]]:
    first, place = rank // TP * TP, rank % TP
    yield "<world>", str(list(range(ranks)))
    yield "<tp>", str(1 + rank // TP)
    yield "<tp ranks>", str(list(range(first, min(first + TP, ranks))))
    yield "<dp>", str(1_000_000 + place)
    yield "<dp ranks>", str(list(range(place, ranks, TP)))


def _unicode(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def _torch_pickle(content: dict[str, Any]) -> bytes:
    return pickletools.optimize(pickle.dumps(content, protocol=2))


def _content(entries: int, last_is_pending: bool, frames: bool, dp: int) -> dict[str, Any]:
    groups = {"0": ("default_pg", "<world>"), "<tp>": ("TP", "<tp ranks>"), "<dp>": ("DP", "<dp ranks>")}
    listed = [_entry(index, frames, dp) for index in range(entries)]
    if last_is_pending:
        listed[-1].update(
            state="scheduled",
            time_discovered_started_ns=None,
            time_discovered_completed_ns=None,
            retired=False,
        )
    return {
        "version": "2.10",
        "pg_config": {
            name: {"name": name, "desc": desc, "ranks": ranks} for name, (desc, ranks) in groups.items()
        },
        "nccl_version": "2.27.5",
        "pg_status": {},
        "entries": listed,
    }


def _entry(index: int, frames: bool, dp: int) -> dict[str, Any]:
    step, place = divmod(index, 5)
    is_dp = place == 4
    seq = 17_000 + (step if is_dp else 4 * step + place)
    created_ns = T0_NS + index * 7_654_321
    entry = {"frames": list(STACKS[place])} if frames else {}
    return entry | {
        "record_id": FIRST_RECORD + index,
        "pg_id": 2 if is_dp else 1,
        "process_group": ("<dp>", "DP") if is_dp else ("<tp>", "TP"),
        "thread_name": "pt_autograd_0",
        "thread_id": "23438718420672",
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": "nccl:_reduce_scatter_base" if is_dp else "nccl:all_reduce",
        "time_created_ns": created_ns,
        "input_sizes": [[dp * 64, 1, 5120]] if is_dp else [[8192, 1, 5120]],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [[64, 1, 5120]] if is_dp else [[8192, 1, 5120]],
        "output_dtypes": ["BFloat16"],
        "state": "completed",
        "time_discovered_started_ns": created_ns + 50_000,
        "time_discovered_completed_ns": created_ns + 900_000,
        "retired": True,
        "timeout_ms": 600_000,
        "is_p2p": False,
    }
