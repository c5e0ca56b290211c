"""Was the incident of a day found, when, and was anything said that is not true?"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from train_ledger.chaos.days.day import Day, Truth
from train_ledger.chaos.days.judged import Judged, Noticed

__all__ = ["Score", "score"]

_EARLY_S = 5.0
_NAMES_A_RANK = frozenset({"RankStepTimeOutlier"})


@dataclass(frozen=True, slots=True)
class Score:
    """A day's pages and records, held against the truth.

    `delay_s` is from the earliest possible time to the first of the wanted alerts, None where none came.
    `false_pages` are pages that nothing in the truth explains, `misnamed` alerts whose labels name who is
    innocent, each in words.
    """

    day: str
    seed: int
    kind: str | None
    delay_s: float | None
    false_pages: tuple[str, ...] = ()
    misnamed: tuple[str, ...] = ()
    pages: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    facts: int = 0
    cpu_s: float = 0.0

    @property
    def found(self) -> bool:
        return self.delay_s is not None


def score(day: Day, judged: Judged) -> Score:
    """The score of a day that was judged to its end."""
    truth, pages = day.truth, judged.of_level("page")
    wanted = [it.t for it in pages if it.alert.name in truth.alerts and it.t >= truth.t]
    return Score(
        day=day.name,
        seed=day.seed,
        kind=truth.kind,
        delay_s=min(wanted) - truth.earliest_t if wanted else None,
        false_pages=tuple(_told(day, it) for it in pages if _is_false(it, truth)),
        misnamed=tuple(
            f"{_told(day, it)} {dict(it.alert.labels)}"
            for it in (*pages, *judged.of_level("record"))
            if _is_misnamed(it, truth)
        ),
        pages=Counter(it.alert.name for it in pages),
        records=Counter(it.alert.name for it in judged.of_level("record")),
        facts=judged.facts,
        cpu_s=judged.cpu_s,
    )


def _is_false(it: Noticed, truth: Truth) -> bool:
    name = it.alert.name
    if it.t < truth.t:
        return True
    too_early = name in truth.alerts and it.t < truth.earliest_t - _EARLY_S
    return too_early or name not in truth.alerts | truth.allowed


def _is_misnamed(it: Noticed, truth: Truth) -> bool:
    """Whether the labels name another one than the truth does; where nobody drags nobody is an outlier."""
    alert = it.alert
    if alert.name in _NAMES_A_RANK:
        return int(alert.labels["rank"]) not in truth.outliers
    if alert.name not in truth.alerts:
        return False
    labels = alert.labels
    return (
        ("host" in labels and labels["host"] not in truth.hosts)
        or ("gpu" in labels and int(labels["gpu"]) not in truth.gpus)
        or ("rank" in labels and int(labels["rank"]) not in truth.ranks)
    )


def _told(day: Day, it: Noticed) -> str:
    hours = (it.t - day.start_t) / 3600.0
    late_s = it.t - day.truth.earliest_t
    beside = f", {late_s:+.0f} s of the earliest" if math.isfinite(late_s) else ""
    return f"{it.alert.name} at {hours:.3f} h{beside}: {it.alert.summary}"
