"""How fast is a healthy step, as what later ones are measured by? (item 5)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from train_ledger.facts import Step
from train_ledger.ops.preflight.own_run import OwnRun
from train_ledger.ops.preflight.records import Check, failed, not_possible, passed

__all__ = ["STEADY_STEPS", "Base", "base_checks", "drill_base", "own_base", "percentile"]

STEADY_STEPS = 100
_WARM_UP_STEPS = 5
_EVEN = 1.15


@dataclass(frozen=True, slots=True)
class Base:
    """A hundred steady steps: p50 and p95 in seconds, the mean MFU in percent if it is known."""

    steps: int
    p50_s: float
    p95_s: float
    mfu: float | None

    @property
    def ratio(self) -> float:
        return self.p95_s / self.p50_s if self.p50_s else 0.0

    def in_words(self) -> str:
        return f"{self.steps} steps, p50 {self.p50_s:.3g} s, p95 {self.p95_s:.3g} s, p95/p50 {self.ratio:.2f}"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of all does not exceed.

    >>> percentile([float(it) for it in range(1, 101)], 0.95)
    95.0
    """
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def own_base(own: OwnRun) -> Base | None:
    """Of the last attempt's last hundred steps that saved nothing; None where it has fewer, warm-up apart."""
    ranks = own.steps.get(own.last_attempt or 0, {})
    if not ranks:
        return None
    first = ranks[min(ranks)]
    found = _base([first[number] for number in sorted(first)][_WARM_UP_STEPS:])
    return found if found is not None and found.steps >= STEADY_STEPS else None


def drill_base(steps: Mapping[int, Step], first: int, last: int) -> Base | None:
    """Of the steps of one rank of the preflight's own job, from the first to the last of its steady ones."""
    return _base([step for number, step in sorted(steps.items()) if first <= number <= last])


def _base(steps: Sequence[Step]) -> Base | None:
    plain = [
        it for it in steps if not it.values.get("ckpt_s", 0.0) > 0 and it.values.get("step_time_s", 0.0) > 0
    ]
    plain = plain[-STEADY_STEPS:]
    if not plain:
        return None
    seconds = [it.values["step_time_s"] for it in plain]
    mfus = [mfu for it in plain if (mfu := it.values.get("mfu")) is not None]
    mfu = sum(mfus) / len(mfus) if len(mfus) == len(plain) else None
    return Base(len(plain), median(seconds), percentile(seconds, 0.95), mfu)


def base_checks(own: OwnRun | None, drilled: Base | None, on_gpu: bool, trace: str | None) -> Iterator[Check]:
    """Of the run's own dry run where there is one; else of the drill, which is no base of its MFU."""
    base = own_base(own) if own is not None else None
    if base is not None and own is not None:
        even = _even(base, "your training")
        yield even
        yield _mfu(base, is_kept=even.verdict == "pass")
        yield _trace(
            str(own.traces[-1]) if own.traces else trace, "your training" if own.traces else "the drill"
        )
        return
    yield _drilled(drilled, on_gpu)
    why = (
        own.why_not if own is not None else ""
    ) or f"RUN holds no {STEADY_STEPS} steady steps of your training"
    fix = f"let your training do {STEADY_STEPS + _WARM_UP_STEPS} steps in RUN, and run this again"
    yield not_possible("MFU", why, fix)
    yield _trace(trace, "the drill")


def _drilled(drilled: Base | None, on_gpu: bool) -> Check:
    if drilled is None:
        return not_possible("even steps", "the preflight's own job has no steady steps: see the item faults")
    if not on_gpu:
        why = f"{drilled.in_words()}: on shared processors, which says nothing of your steps"
        return not_possible("even steps", why, "run it where your training will run")
    return _even(drilled, "the drill")


def _even(base: Base, whose: str) -> Check:
    said = f"{whose}: {base.in_words()}"
    if base.ratio >= _EVEN:
        fix = "find who drags: train-ledger slow RUN; a loader, a log or a card makes steps uneven"
        return failed("even steps", f"{said}, not under {_EVEN}", fix)
    return passed("even steps", said)


def _mfu(base: Base, is_kept: bool) -> Check:
    if base.mfu is None:
        why = "its steps tell no MFU: the device's peak, the model's figures or tokens are not known"
        return not_possible(
            "MFU", why, "give model and, if need be, peak_flops to start(), and tokens to step()"
        )
    if not 0 < base.mfu <= 100:
        said = f"{base.mfu:.1f} %: the peak or the model's figures are wrong"
        return failed("MFU", said, "correct model or peak_flops in run.json")
    kept = (
        "written to run.json as mfu_baseline" if is_kept else "not kept as a base, since the steps are uneven"
    )
    return passed("MFU", f"{base.mfu:.1f} %, {kept}")


def _trace(trace: str | None, whose: str) -> Check:
    if trace is None:
        return not_possible(
            "trace", "none was taken", "train-ledger trace take RUN, while your training runs"
        )
    return passed("trace", f"of {whose}, kept as {trace}")
