"""What does it all cost?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from train_ledger.ledger.accounts.records import CATEGORIES, PARTS, Accounts
from train_ledger.ledger.costs.figures import FIGURES, Figure, Figures, assumed
from train_ledger.ledger.costs.measured import measured, part_of
from train_ledger.ledger.costs.priorities import Priority, priorities
from train_ledger.ledger.costs.recovery import HangCost, hang_cost
from train_ledger.ledger.costs.saving import SavingCost, saving_cost

__all__ = ["Costs", "MfuPoint", "RunCost", "costs"]

_HOURS = {"gpu_hour": None, "hour": 1.0, "day": 24.0, "month": 720.0}


@dataclass(frozen=True, slots=True)
class MfuPoint:
    """One point of MFU, as a share of the throughput, and what that is over the job."""

    of_mfu: float
    share: float
    saved_s: float
    gpu_hours: float
    cost: float


@dataclass(frozen=True, slots=True)
class RunCost:
    """What the run has cost so far: GPU-hours and money by the accounts' categories, None where not known."""

    wall_s: float
    gpu_hours: Mapping[str, float] | None
    cost: float | None
    wasted_cost: float | None

    @property
    def is_known(self) -> bool:
        """Whether any time of it is known at all."""
        return self.wall_s > 0


@dataclass(frozen=True, slots=True)
class Costs:
    """The whole answer.

    `rates` are the costs of the job: "gpu_hour", "hour", "day" and "month" (30 days). `figures` tell on what
    all of it rests and where each comes from. `run` is None where no run was asked about, `saving` where a
    save costs nothing, or the run fails faster than it recovers.
    """

    run_name: str
    currency: str
    figures: Figures
    rates: Mapping[str, float]
    mfu_point: MfuPoint
    hang: HangCost
    saving: SavingCost | None
    priorities: tuple[Priority, ...]
    run: RunCost | None = None
    not_observed: tuple[str, ...] = ()


def costs(
    accounts: Accounts | None = None,
    *,
    configured: Mapping[str, Figure] | None = None,
    given: Mapping[str, Figure] | None = None,
    currency: str = "USD",
) -> Costs:
    """The costs of a run, or of the job that is assumed where `accounts` is None.

    What is `given` goes before what was measured, that before what is `configured`, and the default is last.
    """
    own = measured(accounts) if accounts else {}
    figures = {**assumed(), **(configured or {}), **own, **(given or {})}
    gpus, price = figures["world_size"].value, figures["price"].value
    return Costs(
        run_name=accounts.run if accounts else "",
        currency=currency,
        figures={name: figures[name] for name in FIGURES},
        rates={name: price * (1.0 if hours is None else gpus * hours) for name, hours in _HOURS.items()},
        mfu_point=_mfu_point(figures),
        hang=hang_cost(figures, _parts(accounts) if accounts and accounts.recoveries else None),
        saving=saving_cost(figures),
        priorities=priorities(figures, accounts if accounts and accounts.wall_s > 0 else None),
        run=_run_cost(accounts, price, is_known=figures["price"].origin != "assumed") if accounts else None,
        not_observed=tuple(_not_observed(figures, accounts)),
    )


def _mfu_point(figures: Figures) -> MfuPoint:
    mfu, job_s = figures["mfu"].value, figures["job"].value
    saved_s = job_s / mfu
    gpu_hours = saved_s * figures["world_size"].value / 3600
    return MfuPoint(mfu, 1 / mfu, saved_s, gpu_hours, gpu_hours * figures["price"].value)


def _parts(accounts: Accounts) -> dict[str, float | None]:
    seen = {part: part_of(accounts, part) for part in PARTS}
    return {part: None if figure is None else figure.value for part, figure in seen.items()}


def _run_cost(accounts: Accounts, price: float, *, is_known: bool) -> RunCost:
    """A price that nobody named makes no bill."""
    hours = accounts.gpu_hours
    if hours is None or not is_known:
        return RunCost(accounts.wall_s, hours, None, None)
    wasted = sum(hours.get(name, 0.0) for name in CATEGORIES if name != "productive")
    return RunCost(accounts.wall_s, hours, sum(hours.values()) * price, wasted * price)


def _not_observed(figures: Figures, accounts: Accounts | None) -> list[str]:
    if accounts is None:
        return []
    missing = [name for name, figure in figures.items() if figure.origin == "assumed"]
    named = ", ".join(name for name in missing if name not in _NEVER_MEASURED)
    said = [f"of this run, so that the default stands: {named}"] if named else []
    if figures["mtbi"].origin == "measured" and len(accounts.interruptions) < _MANY:
        few = len(accounts.interruptions)
        said.append(
            f"M rests on {few} interruption{'s' * (few > 1)}: it may be several times as long, or as short"
        )
    if accounts.gpu_hours is None:
        said.append("GPU-hours of this run: its ranks say of no GPU, or how many there are is not known")
    return [*said, *accounts.not_observed]


_MANY = 10
_NEVER_MEASURED = ("job", "detect", "detect_without", "decide", "decide_without")
