"""Dumps as the Flight Recorder would write them, of jobs that are told in a few lines."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from train_ledger.answer import HangAnswer
from train_ledger.hang import RankKnowledge, RankStack
from train_ledger.hang.analysis import reason
from train_ledger.hang.dumps.dump import Dump, reduce_dump
from train_ledger.hang.dumps.dump_files import Dumps

T0_NS = 1_764_000_000_000_000_000
"""When every job here began."""

FRAMES = [
    {
        "name": "all_reduce",
        "filename": "/opt/site-packages/torch/distributed/distributed_c10d.py",
        "line": 3245,
    },
    {"name": "train_step", "filename": "/job/train.py", "line": 88},
]


class Job:
    """A job of `world` ranks; operations are issued in the order in which the methods are called.

    >>> job = Job(4)
    >>> job.issue(range(4), done=True)      # all come, all finish
    >>> job.issue([0, 1, 3])                # rank 2 does not come
    """

    def __init__(self, world: int, *, backend: str = "nccl", frames: bool = True, begins_s: int = 0) -> None:
        self.world = world
        self.backend = backend
        self.frames = FRAMES if frames else []
        self.groups: dict[str, tuple[str, list[int]]] = {"0": ("default_pg", list(range(world)))}
        self.entries: dict[int, list[dict[str, Any]]] = {rank: [] for rank in range(world)}
        self._issued: dict[tuple[int, str], int] = {}
        self._p2p: dict[tuple[int, str], int] = {}
        self._clock = begins_s
        self.enqueued: dict[int, dict[str, int]] = {}  # rank → id of the group → the recorder's own count
        self.completed: dict[int, dict[str, int]] = {}  # the same of what it counts as completed

    def group(self, name: str, ranks: Sequence[int], desc: str = "") -> str:
        """Make a process group; its ranks keep the order in which they are listed."""
        self.groups[name] = (desc, list(ranks))
        return name

    def issue(
        self,
        ranks: Iterable[int],
        op: str = "all_reduce",
        *,
        group: str = "0",
        size: Any = ((4,),),
        out: Any = None,
        dtype: str = "Float",
        done: bool = False,
        frames: list[dict[str, Any]] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Each of `ranks` issues one collective in `group`; `more` are further keys of the entry."""
        self._clock += 1
        for rank in ranks:
            seq = self._issued[rank, group] = self._issued.get((rank, group), 0) + 1
            self._add(rank, group, op, seq=seq, size=size, out=out, dtype=dtype, done=done, frames=frames)
            self.entries[rank][-1].update(more or {})

    def send(
        self, source: int, target: int | None, *, group: str = "0", sides: str = "both", done: bool = False
    ) -> None:
        """A send from rank to rank; `sides` says who posts it: "send", "recv" or both. None: any source."""
        self._clock += 1
        place = self.groups[group][1].index
        near, far = place(source), "?" if target is None else place(target)
        if sides in ("send", "both"):
            self._add_p2p(source, group, f"send {near}->{far}", done)
        if sides in ("recv", "both") and target is not None:
            self._add_p2p(target, group, f"recv {far}<-{near}", done)

    def post(
        self,
        rank: int,
        verb: str,
        peer: int,
        *,
        group: str = "0",
        size: Any = ((4,),),
        dtype: str = "Float",
        done: bool = False,
    ) -> None:
        """One side alone of a send or receive."""
        self._clock += 1
        place = self.groups[group][1].index
        arrow = "->" if verb == "send" else "<-"
        label = f"{verb} {place(rank)}{arrow}{place(peer)}"
        self._add_p2p(rank, group, label, done, size=size, dtype=dtype)

    def receive_from_any(self, target: int, *, group: str = "0") -> None:
        self._add_p2p(target, group, f"recv {self.groups[group][1].index(target)}<-?", done=False)

    def close_batch(self, rank: int, *, group: str = "0", done: bool = True) -> None:
        """The entry that ends a batch of sends and receives and carries its state."""
        self._add(rank, group, "coalesced", p2p_seq=self._p2p[rank, group], size=(), done=done, is_p2p=True)

    def _add_p2p(
        self, rank: int, group: str, op: str, done: bool, *, size: Any = ((4,),), dtype: str = "Float"
    ) -> None:
        self._p2p[rank, group] = number = self._p2p.get((rank, group), 0) + 1
        self._add(rank, group, op, p2p_seq=number, size=size, dtype=dtype, done=done, is_p2p=True)

    def _add(
        self,
        rank: int,
        group: str,
        op: str,
        *,
        size: Any,
        done: bool,
        seq: int | None = None,
        p2p_seq: int = 0,
        out: Any = None,
        dtype: str = "Float",
        is_p2p: bool = False,
        frames: list[dict[str, Any]] | None = None,
    ) -> None:
        is_gloo = self.backend == "gloo"
        entries = self.entries[rank]
        desc, _ = self.groups[group]
        sizes = [list(shape) for shape in size]
        entries.append(
            {
                "frames": self.frames if frames is None else frames,
                "record_id": len(entries),
                "pg_id": list(self.groups).index(group),
                "process_group": (group, desc),
                "thread_name": "python3",
                "collective_seq_id": self._issued.get((rank, group), 0) if seq is None else seq,
                "p2p_seq_id": p2p_seq,
                "op_id": len(entries),
                "profiling_name": op if ":" in op else f"{self.backend}:{op}",
                "time_created_ns": T0_NS + self._clock * 10**9,
                "input_sizes": sizes,
                "input_dtypes": [dtype] * len(sizes),
                "output_sizes": sizes if out is None else [list(shape) for shape in out],
                "output_dtypes": [dtype] * len(sizes),
                "state": "completed" if done and not is_gloo else "scheduled",
                "time_discovered_started_ns": None,
                "time_discovered_completed_ns": T0_NS + 1 if done and not is_gloo else None,
                "retired": done,
                "timeout_ms": 600_000,
                "is_p2p": is_p2p,
            }
        )

    def content(self, rank: int, *, active_only: bool = False, ring: int | None = None) -> dict[str, Any]:
        """What the recorder of `rank` dumps; `ring` keeps the newest entries alone."""
        entries = self.entries[rank]
        if active_only:
            entries = [it for it in entries if not it["retired"]]
        config = {
            name: {"name": name, "desc": desc, "ranks": str(ranks)}
            for name, (desc, ranks) in self.groups.items()
            if rank in ranks
        }
        return {
            "version": "2.10",
            "pg_config": {"": {"name": "", "desc": "", "ranks": "[]"}} if self.backend == "gloo" else config,
            "comm_lib_version": "2.27.5",
            "pg_status": self._status(rank),
            "entries": entries[-ring:] if ring else entries,
        }

    def _status(self, rank: int) -> dict[str, dict[str, int]]:
        completed = self.completed.get(rank, {})
        return {
            name: {"last_enqueued_collective": count}
            | ({"last_completed_collective": completed[name]} if name in completed else {})
            for name, count in self.enqueued.get(rank, {}).items()
        }

    def write(
        self,
        folder: Path,
        ranks: Iterable[int] | None = None,
        *,
        name: str = "rank_{rank}",
        as_json: bool = False,
        **how: Any,
    ) -> Path:
        """One file a rank, all ranks unless told; gives back the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(self.world) if ranks is None else ranks:
            content = self.content(rank, **how)
            (folder / name.format(rank=rank)).write_bytes(encoded(content, as_json=as_json))
        return folder


def encoded(content: dict[str, Any], *, as_json: bool) -> bytes:
    """The bytes of a dump."""
    return _json(content) if as_json else pickle.dumps(content, protocol=2)


def _json(content: dict[str, Any]) -> bytes:
    """JSON dumps have no frames, sorted keys, and no list of entries where it would be empty."""
    entries = [{k: v for k, v in it.items() if k != "frames"} for it in content["entries"]]
    shown = (
        {**content, "entries": entries} if entries else {k: v for k, v in content.items() if k != "entries"}
    )
    return json.dumps(shown, sort_keys=True).encode()


def dump_of(job: Job, rank: int, *, as_json: bool = False, **how: Any) -> Dump:
    """The summary of one rank's dump, without a file."""
    content = job.content(rank, **how)
    if as_json:
        content = json.loads(encoded(content, as_json=True))
    dump = reduce_dump(content, file=f"rank_{rank}", rank=rank, host=None)
    assert dump is not None
    return dump


def answer_of(
    job: Job,
    ranks: Iterable[int] | None = None,
    *,
    known: Mapping[int, RankKnowledge] | None = None,
    stacks: Mapping[int, RankStack] | None = None,
    **how: Any,
) -> HangAnswer:
    """What is concluded from the dumps of `ranks`, all of them unless told; without files, so quickly."""
    wanted = range(job.world) if ranks is None else ranks
    dumps = Dumps(tuple(dump_of(job, rank, **how) for rank in wanted))
    return reason(dumps, stacks=stacks or {}, known=known or {}, world_size=job.world)
