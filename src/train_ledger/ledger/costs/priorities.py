"""What would be worth mending first?

Of a run: by what each measure would have saved in it, from its own recoveries. Without one: in the job that
is assumed. Where two measures save the same seconds, the second counts what the first leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from train_ledger.ledger.accounts.records import Accounts, Recovery
from train_ledger.ledger.costs.figures import Figures
from train_ledger.ledger.costs.recovery import hang_cost
from train_ledger.ledger.costs.saving import saving_cost
from train_ledger.render import duration

__all__ = ["Priority", "is_hardware", "priorities"]

_HARDWARE = ("hardware", "xid", "ecc", "gpu_lost", "nic")


@dataclass(frozen=True, slots=True)
class Priority:
    """A measure, what it would have saved (wall seconds, GPU-hours, money), its effort and how it is counted.

    `saved_s` is None where nothing tells. The effort is the seed article's estimate.
    """

    measure: str
    effort: str
    saved_s: float | None
    gpu_hours: float | None
    cost: float | None
    counted: str


def priorities(figures: Figures, accounts: Accounts | None = None) -> tuple[Priority, ...]:
    """The measures, the one that saves most first, those of which nothing tells last."""
    rows = _of_run(figures, accounts) if accounts else _of_job(figures)
    gpus, price = figures["world_size"].value, figures["price"].value
    told = []
    for measure, effort, saved_s, counted in rows:
        hours = None if saved_s is None else saved_s * gpus / 3600
        told.append(
            Priority(measure, effort, saved_s, hours, None if hours is None else hours * price, counted)
        )
    return tuple(sorted(told, key=lambda it: (it.saved_s is None, -(it.saved_s or 0.0))))


_ALERT = ("alert on the step count, and a runbook for hangs", "2–3 person-days")
_EXCLUDE = (
    "exclude a node and restart by itself where the hardware says why",
    "1–2 weeks, with the scheduler",
)
_INTERVAL = ("checkpoint interval by Young's formula", "a day")
_POINT = ("one more point of MFU", "a day to weeks, by its cause")
_DUMPS = ("where dumps go, and a drill that collects them", "half a day")

_Row = tuple[str, str, float | None, str]


def _of_job(figures: Figures) -> Iterable[_Row]:
    """Each failure of the job, without alert and runbook to begin with."""
    job_s = figures["job"].value
    failures = job_s / figures["mtbi"].value
    saving = saving_cost(figures)
    yield *_ALERT, failures * hang_cost(figures).saved_s, f"{failures:.0f} failures"
    yield (
        *_EXCLUDE,
        failures * figures["decide"].value,
        "if each were the hardware's, with the runbook in place",
    )
    net_s = None if saving is None else (saving.waste_now - saving.waste_young) * job_s
    yield *_INTERVAL, net_s, "what is done again, less what more saves cost"
    yield *_POINT, job_s / figures["mfu"].value, f"of {figures['mfu'].value:.3g} %"
    yield *_DUMPS, None, "saves nothing by itself; without it a hang may stay without a cause for hours"


def _of_run(figures: Figures, accounts: Accounts) -> Iterable[_Row]:
    """What the run's own recoveries took beyond what is attainable."""
    own = accounts.recoveries
    failed = [it for it in own if is_hardware(it)]
    saving = saving_cost(figures)
    detect_s, decide_s = figures["detect"].value, figures["decide"].value
    late = [_beyond(it, "detect", detect_s) for it in own] + [_beyond(it, "decide", decide_s) for it in own]
    stalled_s = 0.0 if own else accounts.seconds.get("stalled", 0.0)
    if stalled_s >= detect_s:
        yield *_ALERT, None, f"not told: it stood for {duration(stalled_s)}, and no restart ended that"
    else:
        took = f"what {_recoveries(len(own))} took beyond {detect_s:.0f} s and {decide_s:.0f} s"
        yield *_ALERT, _sum(late), took
    decided = [_part(it, "decide", decide_s) for it in failed]
    yield (
        *_EXCLUDE,
        _sum(decided) if failed else 0.0,
        f"the decision, at most {decide_s:.0f} s, in {_recoveries(len(failed))} from a hardware fault",
    )
    is_measured = all(figures[name].origin == "measured" for name in ("checkpoint", "interval", "mtbi"))
    net_s = (saving.waste_now - saving.waste_young) * accounts.wall_s if saving and is_measured else None
    why = "over the run" if is_measured else "not told: δ, M or the interval was not measured on this run"
    yield *_INTERVAL, net_s, f"what is done again, less what more saves cost, {why}" if is_measured else why
    productive_s = accounts.seconds.get("productive", 0.0)
    own_mfu = figures["mfu"].origin != "assumed"
    gained_s = productive_s / figures["mfu"].value if own_mfu else None
    yield *_POINT, gained_s, f"of {figures['mfu'].value:.3g} %" if own_mfu else "not told: no MFU is known"
    unknown = sum(it.interruption.cause == "unknown" for it in own)
    yield *_DUMPS, None, f"saves nothing by itself; {_recoveries(unknown)} had no known cause"


def is_hardware(recovery: Recovery) -> bool:
    """Whether the interruption's cause is a fault of hardware, by the facts."""
    return any(word in recovery.interruption.cause.lower() for word in _HARDWARE)


def _recoveries(count: int) -> str:
    return f"{count} recover{'y' if count == 1 else 'ies'}"


def _beyond(recovery: Recovery, part: str, attainable_s: float) -> float | None:
    length_s = recovery.parts_s.get(part)
    return None if length_s is None else max(0.0, length_s - attainable_s)


def _part(recovery: Recovery, part: str, at_most_s: float) -> float | None:
    length_s = recovery.parts_s.get(part)
    return None if length_s is None else min(length_s, at_most_s)


def _sum(values: Iterable[float | None]) -> float | None:
    """Of those that were seen; None where there are some and none was."""
    listed = list(values)
    seen = [value for value in listed if value is not None]
    return sum(seen) if seen or not listed else None
