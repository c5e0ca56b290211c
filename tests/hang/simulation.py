"""A job of many dimensions that really waits: ranks issue, streams run, and one of them does something wrong.

Each rank follows its program. A collective runs when all members have it at the head of their streams, a send
when its receive stands there too; what differs in operation, size or type never runs. The host goes on ahead
of its stream by a few operations over NCCL and by none over gloo, until nothing moves any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from hang.recorder import Job


@dataclass(frozen=True)
class Step:
    """One operation of a program; `peer` for a send or receive, by its global rank."""

    group: str
    op: str = "all_reduce"
    size: int = 4
    dtype: str = "Float"
    peer: int | None = None


@dataclass(frozen=True)
class Layout:
    """How the world is divided; rank = (dp * pp_size + pp) * tp_size + tp."""

    dp: int
    tp: int
    pp: int

    @property
    def world(self) -> int:
        return prod((self.dp, self.tp, self.pp))

    def groups(self) -> Iterator[tuple[str, str, list[int]]]:
        """(name, description, ranks) of every group that has two members or more."""
        place = {(d, p, t): (d * self.pp + p) * self.tp + t for d, p, t in self.places()}
        number = 1
        for desc, axis in (("tp", 2), ("dp", 0), ("pp", 1)):
            lines: dict[tuple[int, ...], list[int]] = {}
            for at, rank in place.items():
                lines.setdefault(at[:axis] + at[axis + 1 :], []).append(rank)
            for ranks in lines.values():
                if len(ranks) > 1:
                    yield f"{number}", desc, ranks
                    number += 1

    def places(self) -> Iterator[tuple[int, int, int]]:
        yield from product(range(self.dp), range(self.pp), range(self.tp))


def programs(
    layout: Layout, steps: int, *, with_p2p: bool
) -> tuple[list[tuple[str, str, list[int]]], list[list[Step]]]:
    """The groups, and what each rank does: layers in tp, activations through pp, gradients over dp."""
    groups = list(layout.groups())
    mine = [
        {desc: (name, ranks) for name, desc, ranks in groups if rank in ranks} for rank in range(layout.world)
    ]
    return groups, [
        [op for _ in range(steps) for op in _one_step(rank, mine[rank], with_p2p)]
        for rank in range(layout.world)
    ]


def _one_step(rank: int, mine: dict[str, tuple[str, list[int]]], with_p2p: bool) -> Iterator[Step]:
    stage = mine.get("pp", ("", [rank]))[1].index(rank)
    stages = mine.get("pp", ("", [rank]))[1]
    if with_p2p and stage > 0:
        yield Step(mine["pp"][0], "recv", 8, peer=stages[stage - 1])
    if "tp" in mine:
        yield Step(mine["tp"][0], "all_gather_into_tensor", 16)
        yield Step(mine["tp"][0], "reduce_scatter_tensor", 32)
    if with_p2p and stage + 1 < len(stages):
        yield Step(mine["pp"][0], "send", 8, peer=stages[stage + 1])
        yield Step(mine["pp"][0], "recv", 8, peer=stages[stage + 1])
    if with_p2p and stage > 0:
        yield Step(mine["pp"][0], "send", 8, peer=stages[stage - 1])
    if "tp" in mine:
        yield Step(mine["tp"][0], "all_reduce", 64)
    if "dp" in mine:
        yield Step(mine["dp"][0], "reduce_scatter_tensor", 128)
        yield Step(mine["dp"][0], "all_gather_into_tensor", 128)
    if "pp" in mine and not with_p2p:
        yield Step(mine["pp"][0], "broadcast", 2)
    yield Step("0", "all_reduce", 1)


def spoiled(program: list[Step], fault: str, at: int) -> list[Step]:
    """The program with one thing wrong at one place."""
    before, here, after = program[:at], program[at], program[at + 1 :]
    if fault == "stop":
        return before
    if fault == "skip":
        return before + after
    if fault == "swap":
        return [*before, *after[:1], here, *after[1:]]
    other = {
        "type": replace(here, op="broadcast" if here.op != "broadcast" else "all_reduce"),
        "size": replace(here, size=here.size * 2),
        "dtype": replace(here, dtype="BFloat16"),
        "stuck": here,
    }[fault]
    return [*before, other, *after]


@dataclass
class _Issued:
    step: Step
    number: int  # in its group for a collective, of its pair for a send or receive
    done: bool = False


class Cluster:
    """The ranks while they run; `stuck` is (rank, place) of what its GPU never ends."""

    def __init__(
        self, world: int, todo: list[list[Step]], *, ahead: int, stuck: tuple[int, int] | None = None
    ) -> None:
        self.todo, self.ahead, self.stuck = todo, ahead, stuck
        self.issued: list[list[_Issued]] = [[] for _ in range(world)]
        self.order: list[tuple[int, int]] = []
        self._head = [0] * world
        self._frozen: set[int] = set()

    def run(self, members: dict[str, list[int]]) -> None:
        """Until nothing moves."""
        while self._issue() | self._complete(members):
            pass

    def _issue(self) -> bool:
        moved = False
        for rank, program in enumerate(self.todo):
            while len(self.issued[rank]) < min(len(program), self._head[rank] + self.ahead):
                step = program[len(self.issued[rank])]
                number = sum(_channel(rank, it.step) == _channel(rank, step) for it in self.issued[rank])
                self.order.append((rank, len(self.issued[rank])))
                self.issued[rank].append(_Issued(step, number))
                moved = True
        return moved

    def _complete(self, members: dict[str, list[int]]) -> bool:
        """Run what stands complete at the heads of the streams."""
        moved = False
        for rank in range(len(self.issued)):
            head = self._head_of(rank)
            if head is None:
                continue
            need = members[head.step.group] if head.step.peer is None else [head.step.peer, rank]
            there = [other for it in need if (other := self._head_of(it))]
            if len(there) == len(need) and all(_fit(rank, head, *it) for it in zip(need, there, strict=True)):
                for it in need:
                    self._end(it)
                moved = True
        return moved

    def _head_of(self, rank: int) -> _Issued | None:
        at = self._head[rank]
        return self.issued[rank][at] if at < len(self.issued[rank]) and rank not in self._frozen else None

    def _end(self, rank: int) -> None:
        """It is over for this rank, unless its GPU stands from here on."""
        if (rank, self._head[rank]) == self.stuck:
            self._frozen.add(rank)
        else:
            self.issued[rank][self._head[rank]].done = True
            self._head[rank] += 1

    def job(self, groups: list[tuple[str, str, list[int]]], backend: str) -> Job:
        """As the recorders of its ranks have it."""
        job = Job(len(self.issued), backend=backend)
        for name, desc, ranks in groups:
            job.group(name, ranks, desc)
        for rank, place in self.order:
            it = self.issued[rank][place]
            step = it.step
            if step.peer is None:
                job.issue(
                    [rank], step.op, group=step.group, size=[[step.size]], dtype=step.dtype, done=it.done
                )
            else:
                job.post(
                    rank,
                    step.op,
                    step.peer,
                    group=step.group,
                    size=[[step.size]],
                    dtype=step.dtype,
                    done=it.done,
                )
        return job

    @property
    def hangs(self) -> bool:
        return any(not it.done for ops in self.issued for it in ops)


def _channel(rank: int, step: Step) -> tuple[object, ...]:
    if step.peer is None:
        return (step.group,)
    pair = (rank, step.peer) if step.op == "send" else (step.peer, rank)
    return (step.group, *pair)


def _fit(rank: int, op: _Issued, other_rank: int, other: _Issued) -> bool:
    if op.step.peer is not None:
        return other_rank == rank or (
            other.step.peer == rank
            and {op.step.op, other.step.op} == {"send", "recv"}
            and (op.step.group, op.step.size, op.step.dtype)
            == (other.step.group, other.step.size, other.step.dtype)
        )
    return other.number == op.number and other.step == op.step
