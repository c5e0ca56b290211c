"""What was lost in an incident: time, steps, GPU-hours, money?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from train_ledger.answer import Diagnosis, Impact
from train_ledger.config import Config
from train_ledger.fields import read_world_size
from train_ledger.ledger import gpu_price_per_hour, impact
from train_ledger.ledger.accounts import Accounts
from train_ledger.ops.postmortem.incident import Incident
from train_ledger.ops.postmortem.split import Split
from train_ledger.render import duration

__all__ = ["Loss", "loss"]


@dataclass(frozen=True, slots=True)
class Loss:
    """`impact` is of the whole, to when the step once reached was passed; else of what is known.

    `gpus` is how many were held, None where the ranks have none or nobody says. `upto` says in words until
    when it counts.
    """

    impact: Impact | None
    gpus: int | None
    upto: str
    currency: str
    why_no_gpus: str = ""

    def told(self, split: Split) -> Iterable[str]:
        """In words."""
        yield from _time(split)
        if self.impact is None:
            yield "in all: not known, since no record says when the run stood still"
            return
        yield f"in all: {self._whole(self.impact)} ({self.upto})"
        if self.impact.gpu_hours is None:
            yield f"cost: {self.why_no_gpus}"
        elif self.impact.cost is None:
            yield "cost: no price known (gpu_price_per_hour in run.json, or [cost] in the configuration)"
        else:
            yield f"cost: {self.impact.cost:,.2f} {self.currency}"

    def _whole(self, found: Impact) -> str:
        if found.gpu_hours is None:
            return duration(found.wall_s)
        digits = 0 if found.gpu_hours >= 100 else 3
        hours = f"{found.gpu_hours:,.{digits}f}"
        minutes = f"{found.wall_s / 60:,.1f} min" if found.wall_s >= 60 else f"{found.wall_s:.1f} s"
        return f"{minutes} × {self.gpus:,} GPUs = {hours} GPU-hours"


def _time(split: Split) -> Iterable[str]:
    if split.down_s is not None:
        yield f"without a step: {duration(split.down_s)}"
    if split.redone_steps and split.redo_s is not None:
        is_one = split.resumed_step is not None and not split.is_of_several
        since = f" from step {split.resumed_step:,} on" if is_one else ""
        yield f"done again: {split.redone_steps:,} steps{since}, {duration(split.redo_s)}"
    elif split.redone_steps:
        yield f"done again: {split.redone_steps:,} steps"


def loss(
    incident: Incident, split: Split, accounts: Accounts | None, run: Mapping[str, Any], config: Config
) -> Loss:
    """The loss as far as it is known: until it was over, else until the last entry of the incident."""
    gpus, why = _gpus(incident.verdict, accounts, run)
    price = gpu_price_per_hour(run, config.cost.gpu_price_per_hour)
    if price is None:
        price = _price_then(incident.verdict)
    wall_s, upto = _wall(incident, split)
    found = None if wall_s is None else impact(wall_s, gpus, price)
    return Loss(found, gpus, upto, config.cost.currency, why)


def _price_then(verdict: Diagnosis | None) -> float | None:
    """What a GPU-hour cost by the verdict, whose configuration may be gone by now."""
    own = verdict.impact if verdict else None
    return own.cost / own.gpu_hours if own and own.cost is not None and own.gpu_hours else None


def _wall(incident: Incident, split: Split) -> tuple[float | None, str]:
    if split.whole_s is not None:
        upto = "from the last step until the step once reached was passed"
        several = f"{len(split.recoveries)} interruptions, each {upto}"
        return split.whole_s, several if split.is_of_several else upto
    verdict = incident.verdict
    last_t = incident.last_t
    if split.stood_t is not None and (went_on_t := incident.went_on_t(split.stood_t)) is not None:
        return went_on_t - split.stood_t, "until steps came again by themselves, none of them lost"
    if split.stood_t is not None and last_t is not None and last_t >= split.stood_t:
        return last_t - split.stood_t, "until the last entry; no record says that it is back at its step"
    if verdict and verdict.impact:
        return verdict.impact.wall_s, "until the verdict"
    return None, ""


def _gpus(
    verdict: Diagnosis | None, accounts: Accounts | None, run: Mapping[str, Any]
) -> tuple[int | None, str]:
    """How many GPUs were held; the accounts before the verdict, that before run.json."""
    if accounts is not None and accounts.world_size:
        if accounts.gpu_hours is not None:
            return accounts.world_size, ""
        return None, "the ranks say of no GPU"
    if verdict is not None and verdict.impact is not None:
        own = verdict.impact
        if own.gpu_hours is None:
            return None, "the ranks say of no GPU"
        if own.wall_s > 0:
            return round(own.gpu_hours * 3600 / own.wall_s), ""
    world_size = read_world_size(run.get("world_size"))
    is_cpu = str(run.get("device") or "").strip().lower() == "cpu"
    if world_size is None or is_cpu:
        return None, "the ranks say of no GPU" if is_cpu else "how many GPUs the run holds is not known"
    return world_size, ""
