"""Which of the troubles are one death, told by several: by the rank, its launcher and the kernel?

It is one trouble then, with the words of whoever knew most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from train_ledger.ops.evidence.gpu_faults import on_one_host
from train_ledger.ops.troubles.trouble import Trouble

__all__ = ["one_a_death"]

_PID = re.compile(r"\bpid(?:\(s\))?[ :]{1,3}(\d{1,9})\b")
_TELLING = {"cause": 0, "sign": 1, "victim": 2, "outside": 3}
_NOT_OF_DEATH = ("watchdog_timeout", "nccl_error", "checkpoint_failed", "xid")


def one_a_death(told: Iterable[Trouble]) -> Iterator[Trouble]:
    """One trouble a death: what a rank raised and what its launcher or the kernel says of its end are one."""
    deaths: dict[tuple[int, int], Trouble] = {}
    by_pid: dict[int, tuple[int, int]] = {}
    rest: list[Trouble] = []
    for it in told:
        if it.rank is None or it.kind in _NOT_OF_DEATH:
            rest.append(it)
            continue
        key = it.attempt, it.rank
        deaths[key] = _one(deaths[key], it) if key in deaths else it
        if it.pid is not None:
            by_pid[it.pid] = key
    of_helpers = _helpers(deaths.values())
    for it in rest:
        owner = _killed(it, by_pid)
        if owner is None:
            yield _of_helper(it, of_helpers)
        else:
            deaths[owner] = _one(replace(it, rank=owner[1]), deaths[owner])
    yield from deaths.values()


_Known = TypeVar("_Known")


def _killed(it: Trouble, by_pid: Mapping[int, _Known]) -> _Known | None:
    """Which of the known processes the kernel killed, if that is what is told."""
    return by_pid.get(it.pid) if it.pid is not None and it.kind == "killed" else None


def _helpers(deaths: Iterable[Trouble]) -> dict[int, Trouble]:
    """Processes of which ranks say that they lost them: those of their loaders."""
    return {int(number): it for it in deaths for number in _PID.findall(it.said)}


def _of_helper(it: Trouble, of_helpers: Mapping[int, Trouble]) -> Trouble:
    """A process that the kernel killed is the rank's that says so, if it is of its host."""
    owner = _killed(it, of_helpers)
    if owner is None or not (it.host is None or owner.host is None or on_one_host(it.host, owner.host)):
        return it
    return replace(it, rank=owner.rank)


def _one(a: Trouble, b: Trouble) -> Trouble:
    """What says why stays, with what the other one knows besides; a status alone says the least."""
    first, second = sorted((a, b), key=_how_little)
    t = first.t
    if second.t is not None and (t is None or (first.earliest_t != t and second.t < t)):
        t = second.t
    weight = first.weight
    if second.weight == "victim" and first.weight == "sign":
        weight = "victim"
    return replace(
        first,
        weight=weight,
        t=t,
        earliest_t=t if first.earliest_t == first.t else first.earliest_t,
        host=first.host or second.host,
        pid=first.pid if first.pid is not None else second.pid,
        is_root=first.is_root or second.is_root,
    )


def _how_little(it: Trouble) -> tuple[bool, bool, int, bool, float]:
    is_status = it.said.startswith("ended with exit status")
    in_signals = it.source.startswith("signals/")
    is_bare = it.kind == "killed" and it.said.startswith("killed")
    t = it.t if it.t is not None else float("inf")
    return is_status, is_bare, _TELLING[it.weight], in_signals, t
