"""How are traces of the same steps taken of living ranks, without hurting the run?

All ranks are asked to begin at one step that none of them has reached, so that their collectives can be laid
side by side. The traces of one taking lie in a folder of their own in RUN/traces.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from train_ledger.ops.asking.ask import Answers, ask, last_lines
from train_ledger.run_dir import RunDir, parsed_json, read_small

__all__ = ["Taken", "first_step", "is_asked", "spread_ranks", "take", "telling_ranks"]

_NOTICED_S = 4.0
_MOST_AHEAD = 100_000
_OPEN_S = 600.0
_REQUEST_BYTES = 1 << 16
_REQUEST = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*\.json\Z")


@dataclass(frozen=True, slots=True)
class Taken:
    """Who answered, and from which step on all were asked for; None where no step of theirs is known."""

    answers: Answers
    first_step: int | None


def take(
    run_dir: RunDir,
    name: str,
    ranks: Collection[int],
    *,
    steps: int,
    wait_s: float,
    by_nsys: bool = False,
) -> Taken:
    """Have these ranks trace the same `steps` into the folder `name`, and wait for them.

    Raises OSError where the request cannot be written.
    """
    first = first_step(run_dir, ranks)
    wanted: dict[str, Any] = {"do": "profile", "steps": steps}
    wanted |= {"by": "nsys"} if by_nsys else {"folder": name}
    if first is not None:
        wanted["first_step"] = first
    return Taken(ask(run_dir, name, ranks, wanted, wait_s), first)


def first_step(run_dir: RunDir, ranks: Iterable[int]) -> int | None:
    """A step that all ranks will hear of before they reach it: each looks for requests once a second."""
    newest, shortest_s = None, math.inf
    for rank in ranks:
        for line in last_lines(run_dir.signals_of(rank)):
            step, took_s = line.get("step"), line.get("step_time_s")
            if type(step) is int and "event" not in line:
                newest = step if newest is None else max(newest, step)
            if isinstance(took_s, int | float) and took_s > 0:
                shortest_s = min(shortest_s, took_s)
    if newest is None:
        return None
    ahead = math.ceil(_NOTICED_S / shortest_s) if shortest_s < math.inf else 1
    return newest + 1 + min(max(ahead, 1), _MOST_AHEAD)


def is_asked(run_dir: RunDir, now: float) -> bool:
    """Whether a request of the last ten minutes, whoever made it, is not answered by all whom it asks."""
    try:
        names = set(os.listdir(run_dir.requests))
    except OSError:
        return False
    requests = (name for name in names if ".rank_" not in name and _REQUEST.match(name))
    return any(_is_open(run_dir, name.removesuffix(".json"), names, now) for name in requests)


def _is_open(run_dir: RunDir, request_id: str, names: Collection[str], now: float) -> bool:
    path = run_dir.request(request_id)
    try:
        if now - path.stat().st_mtime > _OPEN_S:
            return False
        request = parsed_json(read_small(path, limit_bytes=_REQUEST_BYTES))
    except (OSError, ValueError):
        return False
    ranks = request.get("ranks") if isinstance(request, dict) else None
    if not isinstance(ranks, list):
        return True  # everybody is asked: who that is, nobody says
    return any(run_dir.reply(request_id, rank).name not in names for rank in ranks if type(rank) is int)


def telling_ranks(run: Mapping[str, Any]) -> tuple[int, ...]:
    """The first tensor-parallel group, and the rank that is farthest from it: by what run.json says.

    >>> telling_ranks({"world_size": 64, "parallelism": {"tp": 4, "dp": 16}})
    (0, 1, 2, 3, 63)
    >>> telling_ranks({})
    (0,)
    """
    told = run.get("world_size")
    world = told if type(told) is int and told > 0 else 1
    parallelism = run.get("parallelism")
    size = parallelism.get("tp") if isinstance(parallelism, Mapping) else None
    group = min(size if type(size) is int and size > 0 else 1, world)
    return tuple(sorted({*range(group), world - 1}))


def spread_ranks(world_size: int, count: int = 4) -> tuple[int, ...]:
    """So many ranks, evenly over the world.

    >>> spread_ranks(64), spread_ranks(3)
    ((0, 16, 32, 48), (0, 1, 2))
    """
    return tuple(sorted({world_size * number // count for number in range(count)})) if world_size else (0,)
