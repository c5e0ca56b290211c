"""How do the GPUs under a run read as Prometheus metrics?

What the kernel reports of GPUs of the run's ranks; and what NVML tells of a host's GPUs where dcgm-exporter,
whose names these are, does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

from train_ledger.dash.metric_text import Sample, family, labels
from train_ledger.ledger.hardware.faulty import xids_of_run
from train_ledger.ledger.hardware.records import GpuState
from train_ledger.ledger.state import RunState
from train_ledger.ledger.xids import XIDS, xid

__all__ = ["hardware_text"]

_ONE_LOOK_S = 5.0
_COUNTERS = ("_TOTAL", "_COUNTER", "_REMAPPED_ROWS")


def hardware_text(state: RunState) -> str:
    """The families, "" where nothing is known of any GPU."""
    return "".join((*_xids(state), *_shared(state), *_by_nvml(state), *_missing(state)))


def _xids(state: RunState) -> Iterator[str]:
    counts: list[Sample] = []
    times: list[Sample] = []
    for gpu, told in xids_of_run(state):
        if told.by != "kernel":
            continue
        named = labels(host=gpu.host, gpu=gpu.gpu, uuid=gpu.uuid, code=told.code, level=told.level)
        counts.append((named, float(told.count)))
        times.append((named, told.last_t))
    yield family(
        "train_xid_total",
        "counter",
        "XIDs that the kernel reported of a GPU of a rank since the run came to this host, by their level.",
        counts,
    )
    yield family(
        "train_xid_last_timestamp_seconds", "gauge", "When the kernel reported such an XID last.", times
    )
    zero = state.ranks.get(0)
    codes = set(XIDS) if zero is not None and (zero.gpu is not None or zero.uuid) else set[int]()
    yield _infos(frozenset(codes | {told.code for _, told in xids_of_run(state)}))


@lru_cache(maxsize=8)
def _infos(codes: frozenset[int]) -> str:
    infos = [xid(code) for code in sorted(codes)]
    return family(
        "train_xid_info",
        "gauge",
        "What an XID means and what is done about it; all that are known where rank 0 runs, else those seen.",
        [(labels(code=it.code, meaning=it.meaning, action=it.action), 1.0) for it in infos],
    )


def _shared(state: RunState) -> Iterator[str]:
    places = ((gpu, rank) for gpu in state.gpus for rank in gpu.ranks[1:])
    yield family(
        "train_gpu_shared",
        "gauge",
        "A rank on a GPU on which a lower one is, too: what is said of the GPU is said with that one.",
        [(labels(run=state.run, rank=rank, host=gpu.host), 1.0) for gpu, rank in places],
    )


def _by_nvml(state: RunState) -> Iterator[str]:
    """Of a GPU that the newest look at its host did not see nothing is told, or nobody would miss it."""
    newest: dict[str, float] = {}
    for gpu in state.gpus:
        newest[gpu.host] = max(gpu.seen_t or 0.0, newest.get(gpu.host, 0.0))
    told: dict[str, list[Sample]] = defaultdict(list)
    for gpu in state.gpus:
        if gpu.by == "nvml" and newest[gpu.host] - (gpu.seen_t or 0.0) <= _ONE_LOOK_S:
            named = _named(gpu)
            for name, value in gpu.values.items():
                if name.isidentifier():
                    told[name].append((named, value))
    for name, samples in sorted(told.items()):
        kind = "counter" if name.endswith(_COUNTERS) else "gauge"
        yield family(name, kind, "As dcgm-exporter tells it; by NVML.", samples)


def _named(gpu: GpuState) -> str:
    return labels(host=gpu.host, gpu=gpu.gpu, uuid=gpu.uuid)


def _missing(state: RunState) -> Iterator[str]:
    rows = [(host, name) for host, names in sorted(state.not_observed.items()) for name in names]
    yield family(
        "train_hardware_not_observed",
        "gauge",
        "A figure that this host's hardware, or its driver, does not tell.",
        [(labels(host=host, what=name), 1.0) for host, name in rows],
    )
