"""Is a fault that is planted noticed: a killed rank, a slow one, a tampered gradient? (item 8)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from train_ledger.ops.preflight.figures import RankFigures
from train_ledger.ops.preflight.records import Check, failed, not_possible, passed
from train_ledger.render import ranks_in_brief

__all__ = ["OWN_STORE_VARIABLE", "Launched", "SlowFound", "fault_checks"]

OWN_STORE_VARIABLE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
"""Of torch's c10d rendezvous: 1 has the agent keep its store to itself, so that each attempt makes one."""

_FEWEST_TO_COMPARE = 3
_BUSY = 2.5
"""Processes for each core beyond which the kernel chooses who is slow; the drill's own are fewer."""


@dataclass(frozen=True, slots=True)
class Launched:
    """How the launcher took the death of a rank.

    `came_back` says that all ranks trained on after it, `only_with` that they did so only with this variable
    set, `said` is what the launcher or a rank said last where they did not.
    """

    came_back: bool
    only_with: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class SlowFound:
    """What `train-ledger slow` says of the job in which one rank was made slow.

    `load_per_core` is how many processes wanted each core of this machine then, None where the job ran
    elsewhere.
    """

    cause: str
    ranks: tuple[int, ...]
    load_per_core: float | None = None


def fault_checks(
    figures: Mapping[int, RankFigures], launched: Launched | None, slow: SlowFound | None
) -> Iterator[Check]:
    """`launched` None: under a launcher of the user's own, where nobody is killed."""
    yield _kill(launched)
    yield _slow(figures, slow)
    yield from _tamper(figures)


def _kill(launched: Launched | None) -> Check:
    name = "kill a rank"
    if launched is None:
        why = "no process was killed: under a launcher of yours nobody else may start them again"
        return not_possible(name, why, "train-ledger preflight RUN --only faults, on one node")
    if not launched.came_back:
        said = f"the launcher did not bring the job back: {launched.said or 'it said nothing'}"
        return failed(
            name, said, "read the ranks' logs; without automatic restarts every fault waits for a person"
        )
    if launched.only_with:
        said = f"restarted, but the ranks did not find each other again: {launched.said}"
        fix = f"export {launched.only_with}=1 for torchrun: else restarted ranks read old addresses"
        return failed(name, said, fix)
    return passed(
        name, "one rank ended by SIGKILL: the launcher ended the others and all went on from the save"
    )


def _slow(figures: Mapping[int, RankFigures], slow: SlowFound | None) -> Check:
    name = "slow a rank"
    if 0 < _ranks(figures) < _FEWEST_TO_COMPARE:
        why = f"{_ranks(figures)} ranks: with fewer than three there is nobody to compare with"
        return not_possible(name, why, "--ranks 4")
    planted = next((it.slow.planted for it in figures.values() if it.slow is not None), None)
    if planted is None or slow is None:
        why = "the preflight's job did not come to the steps in which a rank is slow"
        return not_possible(name, why, "see the check before this one")
    if slow.cause.startswith("slow.straggler") and slow.ranks == (planted,):
        return passed(name, f"rank {planted} was made slow, and named: {slow.cause}")
    if not slow.ranks and (slow.load_per_core or 0.0) > _BUSY:
        why = (
            f"not here now, because {slow.load_per_core:.1f} processes want each core: every rank waits for "
            f"its turn, and rank {planted}, which was made slow, does not stand out"
        )
        return not_possible(name, why, "try again on a quiet machine")
    named = ranks_in_brief(slow.ranks) if slow.ranks else "nobody"
    said = f"rank {planted} was made slow, and named was {named} ({slow.cause})"
    return failed(name, said, "other programs on these cores hide it: try again on a quiet machine")


def _ranks(figures: Mapping[int, RankFigures]) -> int:
    return next((it.environment.ranks for it in figures.values()), 0)


def _tamper(figures: Mapping[int, RankFigures]) -> Iterator[Check]:
    name = "tamper with a gradient"
    told = next((it.tamper for it in figures.values() if it.tamper is not None), None)
    if _ranks(figures) == 1:
        yield not_possible(name, "one rank has no replica to be compared with", "--ranks 4")
    elif told is None:
        yield not_possible(name, "the preflight's job did not come so far", "see the checks before this one")
    elif told.before:
        said = f"replicas of {ranks_in_brief(told.before)} differed before anything was tampered with"
        yield failed(name, said, "a GPU or a link corrupts data: items gpu and bandwidth")
    elif not told.after:
        said = f"one bit was flipped on rank {told.planted}, and a checksum of the replicas saw nothing"
        yield failed(name, said, "silent corruption would go unseen here")
    elif told.after != (told.planted,):
        said = (
            f"it was seen, but not whose it is: {ranks_in_brief(told.after)}; planted on rank {told.planted}"
        )
        yield not_possible(name, said, "three ranks or more make a majority: --ranks 4")
    else:
        yield passed(name, f"one bit flipped on rank {told.planted}: a checksum of the replicas names it")
    why = "no signal of a run compares replicas: in your own training nothing here would find it"
    fix = (
        "compare a checksum of the weights over the data-parallel ranks every thousand steps, in your trainer"
    )
    yield not_possible("in your training", why, fix)
