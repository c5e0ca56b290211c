"""Which collective of one rank is the same one as which of another?

By the number that its group gave it, where the trace tells it; else by its place among its like within the
step that launched it; else, where no steps are marked, by its place in the whole trace. A kind that ranks had
not equally often is left out: which call is which would be a guess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from train_ledger.slow.trace.launching import launching
from train_ledger.slow.trace.reading.names import GpuClass, is_sync_collective
from train_ledger.slow.trace.reading.trace import Trace

__all__ = ["Call", "common_calls"]

_Key: TypeAlias = tuple[object, ...]


class Call(NamedTuple):
    """One rank's part in a collective, in nanoseconds as in its trace; `at` is its start since 1970."""

    start: int
    end: int
    at: int


_Calls = Mapping[_Key, Sequence[Call]]
_NO_STEP_IN_COMMON = "these traces are of different steps; take them at once, of all ranks"


def common_calls(traces: Mapping[int, Trace]) -> tuple[list[dict[int, Call]], int, str]:
    """(collectives with the ranks that took part, collectives left out, why there are none or "")."""
    steps = [{number for number, _, _ in trace.steps} for trace in traces.values()]
    marked = [it for it in steps if it]
    shared = set.intersection(*marked) if len(marked) == len(steps) else None
    calls = {rank: _calls(trace, shared) for rank, trace in traces.items()}
    kinds: dict[_Key, dict[int, Sequence[Call]]] = defaultdict(dict)
    for rank, known in calls.items():
        for key, listed in known.items():
            kinds[key][rank] = listed
    found: list[dict[int, Call]] = []
    differing = 0
    for of_ranks in kinds.values():
        counts = [len(listed) for listed in of_ranks.values()]
        if len(of_ranks) < 2:
            continue
        if min(counts) == max(counts):
            found += [{rank: it[number] for rank, it in of_ranks.items()} for number in range(counts[0])]
        else:
            differing += max(counts)
    return found, differing, _NO_STEP_IN_COMMON if shared == set() and not found else ""


def _calls(trace: Trace, shared: set[int] | None) -> _Calls:
    """Collectives that end together, in their order; `shared` are the steps that all ranks recorded."""
    found: dict[_Key, list[Call]] = defaultdict(list)
    steps = _steps_of(trace) if shared is not None else None
    for place in np.flatnonzero(trace.gpu.kind == GpuClass.COMMUNICATION).tolist():
        told = trace.collectives.get(place)
        name = told.name if told else trace.names[int(trace.gpu.name[place])]
        if not is_sync_collective(name):
            continue
        key: _Key = (told.group, told.name, told.elements) if told else (name,)
        if told and told.number is not None:
            key = (*key, "number", told.number)
        elif steps is not None and shared is not None:
            if steps[place] not in shared:
                continue
            key = (*key, "step", steps[place])
        start, end = int(trace.gpu.start[place]), int(trace.gpu.end[place])
        found[key].append(Call(start, end, trace.base_ns + start))
    return found


def _steps_of(trace: Trace) -> list[int | None]:
    """Within which step's mark each activity was launched."""
    launched = launching(trace)
    starts = np.array([start for _, start, _ in trace.steps], dtype=np.int64)
    place = np.searchsorted(starts, launched.at, side="right") - 1
    known = launched.is_known & (place >= 0)
    return [
        trace.steps[number][0] if is_known else None
        for number, is_known in zip(place.tolist(), known, strict=True)
    ]
