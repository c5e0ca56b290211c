"""How does the speed of the run develop, as far as is known now?"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from train_ledger.config import Alerts
from train_ledger.fields import read_number
from train_ledger.ledger.attempts import AttemptFold
from train_ledger.ledger.rank import RankFold
from train_ledger.ledger.state import RunState
from train_ledger.ledger.trends.figures import Speed
from train_ledger.ledger.trends.own_work import outliers
from train_ledger.ledger.trends.run_trends import RunTrends, Times
from train_ledger.ledger.trends.stages import stages_of

__all__ = ["Given", "comparable", "speed_of"]


@dataclass(frozen=True, slots=True)
class Given:
    """What run.json says of it: how the ranks are laid out, and how much mfu (percent) is usual."""

    parallelism: Mapping[str, Any]
    mfu_baseline: float | None

    @classmethod
    def read(cls, run_json: Mapping[str, Any]) -> Given:
        parallelism = run_json.get("parallelism")
        baseline = read_number(run_json.get("mfu_baseline"))
        return cls(
            parallelism=parallelism if isinstance(parallelism, Mapping) else {},
            mfu_baseline=baseline if baseline is not None and 0 < baseline < math.inf else None,
        )


def comparable(attempts: Iterable[AttemptFold], run: RunState, world_size: int | None) -> set[int]:
    """The attempts that ran on as many ranks as the current one, whose steps should take as long.

    `world_size` is that of attempts that do not say.
    """
    return {it.number for it in attempts if (it.world_size or world_size) == run.world_size}


def speed_of(
    run: RunState,
    given: Given,
    trends: RunTrends,
    ranks: Collection[RankFold],
    like: Collection[int],
    on_zero: Times,
    alerts: Alerts,
) -> Speed:
    """The figures of the run's current attempt; `ranks` are all that are known, `like` attempts like it."""
    here = [rank for rank in ranks if rank.attempt == run.attempt and not rank.speaks_for_all]
    told = [it for rank in ranks if (it := rank.trends.mfu_baseline) is not None]
    mfu = trends.mfu(run.attempt, on_zero, alerts)
    return Speed(
        step_times=trends.step_times(run.attempt, like, on_zero, alerts),
        mfu=mfu[0] if mfu else None,
        mfu_t=mfu[1] if mfu else None,
        mfu_baseline=given.mfu_baseline or max(told, default=None),
        spike=trends.spike(run.attempt, on_zero),
        outliers=outliers(
            [(rank.rank, rank.host, rank.trends.work) for rank in here],
            run.world_size,
            stages_of(run.world_size, given.parallelism),
            run.p50_step_time_s,
            alerts,
        ),
    )
