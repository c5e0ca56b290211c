"""Does a run go on after a restart as if nothing had been, and in another layout? (items 6 and 7)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from train_ledger.facts import Step
from train_ledger.ops.preflight.figures import RankFigures
from train_ledger.ops.preflight.own_run import OwnRun
from train_ledger.ops.preflight.records import Check, failed, not_possible, passed

__all__ = ["Redone", "layout_checks", "redone", "restore_checks"]

_WITHIN = 1e-4

Steps = Mapping[int, Mapping[int, tuple[str, int]]]
"""Of each rank the loss (float.hex) and the checksum of the batch of each step."""


@dataclass(frozen=True, slots=True)
class Redone:
    """Steps that two attempts did; rank and step at which losses or batches first part, None if none do."""

    steps: int
    loss_parts: tuple[int, int] | None
    data_parts: tuple[int, int] | None


def redone(before: Steps, after: Steps) -> Redone:
    """What the same steps of two attempts have in common.

    >>> redone({0: {1: ("a", 7), 2: ("b", 8)}}, {0: {2: ("b", 9), 3: ("c", 1)}})
    Redone(steps=1, loss_parts=None, data_parts=(0, 2))
    """
    both = [(rank, step) for rank, of in after.items() for step in sorted(of) if step in before.get(rank, {})]
    losses = [at for at in both if before[at[0]][at[1]][0] != after[at[0]][at[1]][0]]
    data = [at for at in both if before[at[0]][at[1]][1] != after[at[0]][at[1]][1]]
    return Redone(len({step for _, step in both}), _first(losses), _first(data))


def _first(places: list[tuple[int, int]]) -> tuple[int, int] | None:
    return min(places, key=lambda at: at[1], default=None)


def restore_checks(
    figures: Mapping[int, RankFigures], before: Steps, after: Steps, own: OwnRun | None
) -> Iterator[Check]:
    """Of the preflight's job on this storage, and of a restart of the run's own training if it had one."""
    taken_up = next((it.taken_up for it in figures.values() if it.taken_up is not None), None)
    yield from _of_drill(redone(before, after) if taken_up else None, bool(taken_up and taken_up.restarts))
    yield _duration(figures, own)
    yield _of_own(own)


def _of_drill(both: Redone | None, was_killed: bool) -> Iterator[Check]:
    if both is None or not both.steps:
        why = "the preflight's job did not come back from its checkpoint"
        yield failed("drill: loss", why, "see its logs; the item faults says how it ended")
        return
    how = "saved, every process ended, restored" if was_killed else "saved, and read into fresh weights"
    if both.loss_parts is None:
        yield passed("drill: loss", f"{how}: the losses of {both.steps} redone steps agree to the bit")
    else:
        rank, step = both.loss_parts
        said = f"{how}: from step {step} on rank {rank} has another loss than before"
        yield failed("drill: loss", said, "the storage or torch.distributed.checkpoint gives back other bits")
    if both.data_parts is None:
        yield passed("drill: data", f"the same batches in the same order on every rank, {both.steps} steps")
    else:
        rank, step = both.data_parts
        said = f"from step {step} on rank {rank} gets another batch than before"
        yield failed("drill: data", said, "the state of its generator did not come back")
    if not was_killed:
        why = "no process was killed here: under a launcher of yours nobody else may start them again"
        yield not_possible("drill: kill", why, "train-ledger preflight RUN --only restore, on one node")


def _duration(figures: Mapping[int, RankFigures], own: OwnRun | None) -> Check:
    saves = [
        float(it.details["duration_s"])
        for it in (own.events if own is not None else ())
        if it.name == "ckpt_saved" and isinstance(it.details.get("duration_s"), int | float)
    ]
    if saves:
        return passed("duration", f"a save of your training takes {median(saves):.3g} s (δ), of {len(saves)}")
    drilled = max((it.saved.seconds for it in figures.values() if it.saved is not None), default=None)
    if drilled is None:
        return not_possible("duration", "nothing was saved here", "let your training save once in RUN")
    why = f"your training has not saved in RUN yet; the drill's small checkpoint took {drilled:.3g} s"
    return not_possible(
        "duration", why, "let your training save once in RUN: it is the δ of Young's interval"
    )


def _of_own(own: OwnRun | None) -> Check:
    """Its last restart that did steps again."""
    name = "your training"
    pairs = _own_pairs(own) if own is not None else []
    if not pairs:
        why = (
            own.why_not if own is not None else ""
        ) or "RUN holds no restart of your training that redid steps"
        fix = "start it in RUN, kill it some steps after a save, start it again, and run this again"
        return not_possible(name, why, fix)
    if moved := [(old, new) for old, new in pairs if _position(old) != _position(new)]:
        old, new = moved[0]
        consumed = f"{_position(new):g} samples, before {_position(old):g}"
        said = f"at step {new.step} rank {new.rank} has consumed {consumed}"
        return failed(name, said, "save the loader's state with the checkpoint, and load it")
    worst, (old, new) = max(((_apart(*pair), pair) for pair in pairs), key=lambda it: it[0])
    steps = len({it.step for _, it in pairs})
    if worst > _WITHIN:
        losses = f"{new.values['loss']:g}, before {old.values['loss']:g}"
        said = f"at step {new.step} rank {new.rank} has the loss {losses}"
        return failed(name, said, "weights, optimizer, generators or data do not all come back")
    exact = "to the bit" if not worst else "to within 0.01 %, as kernels that add in any order do"
    return passed(name, f"the losses of {steps} redone steps agree {exact}")


def _own_pairs(own: OwnRun) -> list[tuple[Step, Step]]:
    """The same step of the last attempt and of the latest one before it that did it."""
    last = own.last_attempt
    found = []
    for rank, of in own.steps.get(last or 0, {}).items() if last else ():
        for number, step in of.items():
            earlier = [
                of_rank[number]
                for attempt in range(last or 0)
                if number in (of_rank := own.steps.get(attempt, {}).get(rank, {}))
            ]
            if earlier and "loss" in step.values and "loss" in earlier[-1].values:
                found.append((earlier[-1], step))
    return sorted(found, key=lambda pair: pair[1].step)


def _position(step: Step) -> float:
    return step.values.get("consumed_samples", step.values.get("consumed_tokens", 0.0))


def _apart(old: Step, new: Step) -> float:
    """Relative; infinite where one is not finite and the other is."""
    one, two = old.values["loss"], new.values["loss"]
    if one == two or (one != one and two != two):
        return 0.0
    off = abs(one - two) / max(abs(one), abs(two), 1e-12)
    return off if off == off else float("inf")


def layout_checks(figures: Mapping[int, RankFigures]) -> Iterator[Check]:
    """The preflight's checkpoint, read in another layout."""
    told = {rank: it for rank, it in figures.items() if it.layout is not None and it.saved is not None}
    if not told:
        fix = "see its logs; the item faults says how it ended"
        yield failed("other layout", "the preflight's job did not load its checkpoint in another layout", fix)
        return
    first = next(iter(told.values()))
    if first.layout is not None and first.layout.why_not:
        yield not_possible("other layout", first.layout.why_not, "give it four ranks: --ranks 4")
        return
    off = [rank for rank, it in told.items() if it.layout and it.saved and it.layout.loss != it.saved.loss]
    words = first.layout.words if first.layout else ""
    if off:
        said = f"{words}: rank {off[0]} computes another loss than before the save"
        yield failed(
            "other layout", said, "torch.distributed.checkpoint gives back other bits on this storage"
        )
    else:
        yield passed("other layout", f"{words}: the loss is the same to the bit, on {len(told)} ranks")
    why = "whether your own model loads in another layout only your own trainer can try"
    yield not_possible("your training", why, "load one of its checkpoints with another tp or dp, once")
