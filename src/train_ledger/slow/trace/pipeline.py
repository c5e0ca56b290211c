"""When does a stage of a pipeline wait for another stage?"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from train_ledger.slow.trace.intervals import Intervals, nothing, union
from train_ledger.slow.trace.reading.names import GpuClass
from train_ledger.slow.trace.reading.trace import Collective, Trace

__all__ = ["Schedule", "has_receives", "pipeline_waits"]

_POINT_TO_POINT = re.compile(r"send_?recv", re.IGNORECASE)
_RECEIVES = re.compile(r"recv", re.IGNORECASE)
_OF_ALL = re.compile(r"all_?to_?all", re.IGNORECASE)
_WITHIN_A_STAGE = re.compile(
    r"(?:^|[_\W])(?:cp|ep|context|expert|ulysses|ring)(?:$|[_\W])|context_par|expert_m", re.I
)
_SEVERAL = re.compile(r"coalesced|batch", re.IGNORECASE)
_SHARE = 10


@dataclass(frozen=True, slots=True)
class Schedule:
    """A pipeline of so many stages and micro-batches, with so many chunks of layers a rank: 1F1B with one.

    Raises ValueError where one of them is less than one.
    """

    stages: int
    micro_batches: int
    chunks: int = 1

    def __post_init__(self) -> None:
        if min(self.stages, self.micro_batches, self.chunks) < 1:
            raise ValueError("stages, micro-batches and chunks are at least one each")

    @property
    def bubble(self) -> float:
        """The part of a step that it idles where all stages take equally long.

        (p − 1) / (v·m + p − 1) for p stages, m micro-batches and v chunks (Narayanan et al. 2021, 2.2).

        >>> round(Schedule(4, 8).bubble, 4), round(Schedule(4, 8, 2).bubble, 4)
        (0.2727, 0.1579)
        """
        return (self.stages - 1) / (self.chunks * self.micro_batches + self.stages - 1)


def pipeline_waits(trace: Trace) -> Intervals | None:
    """When receives from another stage wait for what is not sent yet; None where that cannot be told.

    Of equal receives the fastest tenth shows what the transfer takes; what is longer waited before it.
    Nothing waits where nothing is received from one rank.
    """
    receives = _receives(trace)
    if not len(receives):
        return nothing()
    if not trace.collectives:
        return None  # a kernel called SendRecv may as well be an all-to-all
    waits: list[tuple[int, int]] = []
    for places in _alike(trace, receives).values():
        lengths = trace.gpu.end[places] - trace.gpu.start[places]
        transfer_ns = int(np.percentile(lengths, _SHARE, method="lower"))
        ends = trace.gpu.end[places] - transfer_ns
        waits += zip(trace.gpu.start[places].tolist(), ends.tolist(), strict=True)
    return union([start for start, _ in waits], [end for _, end in waits])


def has_receives(trace: Trace) -> bool:
    """Whether the GPU itself receives from single ranks."""
    return bool(len(_receives(trace)))


def _receives(trace: Trace) -> np.ndarray:
    named = [
        number
        for number, name in enumerate(trace.names)
        if _POINT_TO_POINT.search(name) and not _OF_ALL.search(name)
    ]
    is_one = np.isin(trace.gpu.name, named) & (trace.gpu.kind == GpuClass.COMMUNICATION)
    for place, collective in trace.collectives.items():
        is_one[place] = _is_receive(collective, is_one[place])
    return np.flatnonzero(is_one)


def _is_receive(collective: Collective, is_point_to_point: bool) -> bool:
    """Rings of context parallelism and the exchanges of experts send and receive within a stage."""
    if _WITHIN_A_STAGE.search(collective.described) or _OF_ALL.search(collective.name):
        return False
    if _RECEIVES.search(collective.name):
        return True
    return bool(is_point_to_point and _SEVERAL.search(collective.name))


def _alike(trace: Trace, receives: np.ndarray) -> dict[tuple[object, ...], np.ndarray]:
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place in receives.tolist():
        told = trace.collectives.get(place)
        key = (told.name, told.group, told.elements) if told else (int(trace.gpu.name[place]),)
        groups[key].append(place)
    return {key: np.array(places) for key, places in groups.items()}
