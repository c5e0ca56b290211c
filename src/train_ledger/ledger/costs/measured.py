"""Which figures of its own does a run give, by its accounts?"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from train_ledger.ledger.accounts.records import Accounts
from train_ledger.ledger.costs.figures import Figure

__all__ = ["measured", "part_of"]


def measured(accounts: Accounts) -> dict[str, Figure]:
    """What the run itself shows, by the names of `FIGURES`; what it does not is left out.

    The parts of a recovery are the medians of those that were seen. Detection and decision are not among
    them: what they would be with an alert and a runbook, and without, no run can show of itself.
    """
    saving = accounts.checkpointing
    found = {
        "world_size": _figure(accounts.world_size, "ranks of the run"),
        "mfu": _figure(accounts.mfu, "mean over productive time"),
        "mtbi": _figure(accounts.mtbi_s, _of(len(accounts.interruptions), "interruption")),
        "checkpoint": _figure(saving.blocking_s, f"median of {_of(saving.saves, 'save')}"),
        "interval": _figure(saving.interval_s, f"median of {_of(saving.saves, 'save')}"),
    }
    if price := accounts.price_per_gpu_hour:
        found["price"] = Figure(price, "configured")
    for part in ("dump", "restart", "load", "redo"):
        found[part] = part_of(accounts, part)
    return {name: figure for name, figure in found.items() if figure is not None and _is_usable(name, figure)}


def part_of(accounts: Accounts, part: str) -> Figure | None:
    """The median of one of `accounts.PARTS` over the run's recoveries; None where none was seen."""
    lengths = _seen(it.parts_s.get(part) for it in accounts.recoveries)
    own = _of(len(lengths), "recovery", "recoveries")
    return Figure(median(lengths), "measured", f"median of {own}") if lengths else None


def _seen(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _figure(value: float | None, by: str) -> Figure | None:
    return None if value is None else Figure(float(value), "measured", by)


def _is_usable(name: str, figure: Figure) -> bool:
    """A mean of no time at all, or an MFU that was not taken, is none."""
    return figure.value > 0 or name not in ("world_size", "mfu", "mtbi", "interval")


def _of(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
