"""What Prometheus makes of the gauges of a run's speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dash.promtool import NO, YES, needs_promtool, no_number, node, replay, replay_summary, series, steady
from train_ledger.config import Alerts
from train_ledger.dash.rules.speed import SPEED_RULES

SELDOM = Alerts(evaluation_interval_s=15.0)
BY_NAME = {rule.name: rule for rule in SPEED_RULES}

N1 = "n1:9466"


def living(instance: str = "n0:9466", minutes: float = 30, **others: Any) -> list[dict[str, str]]:
    return node(instance, stops=minutes, minutes=minutes, **others)


def step_times(recent: str, usual: str, instance: str = "n0:9466", **others: Any) -> list[dict[str, str]]:
    return [
        series("train_step_time_recent_seconds", recent, instance=instance, **others),
        series("train_step_time_usual_seconds", usual, instance=instance, **others),
    ]


def mfu(values: str, instance: str = "n0:9466", **others: Any) -> list[dict[str, str]]:
    return [series("train_mfu_sustained_fraction", values, instance=instance, **others)]


SLOWER, LOW, DRIFT = "TrainingStepTimeRegressed", "TrainingMfuDegraded", "TrainingMfuDrift"
_OTHER = [{**each, "series": each["series"].replace("r42", "r43")} for each in living(N1)]

CASES: dict[str, tuple[list[dict[str, str]], dict[str, set[str]]]] = {
    "12 s became 40 s": (
        [*living(), *step_times(f"{steady(12, 10)} {steady(40, 20)}", steady(12, 30))],
        {f"{SLOWER} at 9": NO, f"{SLOWER} at 10.5": YES, f"{SLOWER} at 29": YES},
    ),
    "it ends when the new pace is the usual one": (
        [*living(), *step_times(steady(40, 30), f"{steady(12, 10)} {steady(40, 20)}")],
        {f"{SLOWER} at 9": YES, f"{SLOWER} at 14": YES, f"{SLOWER} at 16": NO},
    ),
    "as long as ever": ([*living(), *step_times(steady(14, 30), steady(12, 30))], {f"{SLOWER} at 29": NO}),
    "nothing is known": (living(), {f"{SLOWER} at 29": NO, f"{LOW} at 29": NO, f"{DRIFT} at 29": NO}),
    "no usual hour": ([*living(), *step_times(steady(40, 30), "_x360")], {f"{SLOWER} at 29": NO}),
    "no numbers": ([*living(), *step_times(no_number(30), steady(12, 30))], {f"{SLOWER} at 29": NO}),
    "of three nodes one has a broken timer": (
        [
            *(it for name in ("n0:9466", N1, "n2:9466") for it in living(name)),
            *step_times(steady(90, 30), steady(12, 30)),
            *step_times(steady(12, 30), steady(12, 30), N1),
            *step_times(steady(12, 30), steady(12, 30), "n2:9466"),
        ],
        {f"{SLOWER} at 29": NO},
    ),
    "two nodes whose clocks are far apart": (
        [
            *living(skew=600),
            *living(N1, ranks=range(2, 4), skew=-600),
            *step_times(steady(40, 30), steady(12, 30)),
            *step_times(steady(40, 30), steady(12, 30), N1),
        ],
        {f"{SLOWER} at 29": YES},
    ),
    "the exporter died": (
        [*living(alive=10), *step_times(steady(40, 10), steady(12, 10))],
        {f"{SLOWER} at 9": YES, f"{SLOWER} at 28": YES},
    ),
    "an exporter of a node that the run has left": (
        [
            *living(restarts=f"{steady(0, 10)} {steady(1, 20)}"),
            *living(N1, alive=10),
            *step_times(steady(40, 10), steady(12, 10), N1),
        ],
        {f"{SLOWER} at 9": YES, f"{SLOWER} at 20": NO},
    ),
    "another run": (
        [*living(), *_OTHER, *step_times(steady(40, 30), steady(12, 30))],
        {f"{SLOWER} at 29": YES},
    ),
    "the run has ended": (
        [
            *living(finished=f"{steady(0, 10)} {steady(1, 20)}"),
            *step_times(steady(40, 30), steady(12, 30)),
        ],
        {f"{SLOWER} at 9": YES, f"{SLOWER} at 29": NO},
    ),
    "mfu is low": (
        [*living(), *mfu(f"{steady(1, 10)} {steady(0.8, 20)}")],
        {f"{LOW} at 9": NO, f"{LOW} at 10.5": YES, f"{DRIFT} at 29": NO},
    ),
    "one scrape of a low mfu is missed": (
        [*living(), *mfu(f"{steady(0.8, 20)} _x6 {steady(0.8, 9)}")],
        {f"{LOW} at 20.2": YES, f"{LOW} at 29": YES},
    ),
    "mfu of one node is no number": (
        [
            *(it for name in ("n0:9466", N1, "n2:9466") for it in living(name)),
            *(*mfu(no_number(30)), *mfu(steady(0.8, 30), N1), *mfu(steady(0.8, 30), "n2:9466")),
        ],
        {f"{LOW} at 29": YES},
    ),
    "mfu drifts": ([*living(), *mfu(steady(0.9, 30))], {f"{LOW} at 29": NO, f"{DRIFT} at 29": YES}),
    "mfu is well": ([*living(), *mfu(steady(0.97, 30))], {f"{LOW} at 29": NO, f"{DRIFT} at 29": NO}),
    "the exporter died with a low mfu": (
        [*living(alive=10), *mfu(steady(0.8, 10))],
        {f"{LOW} at 28": YES},
    ),
    "one of many ranks waits for data": (
        [
            *living(),
            series("train_data_wait_fraction", steady(0.001, 30), rank=0),
            series("train_data_wait_fraction", f"{steady(0.01, 10)} {steady(0.5, 20)}", rank=1),
            series("train_data_wait_fraction", no_number(30), rank=2),
        ],
        {"DataLoadingWait at 9": NO, "DataLoadingWait at 11": YES},
    ),
    "nobody waits for data": (
        [*living(), series("train_data_wait_fraction", steady(0.05, 30), rank=0)],
        {"DataLoadingWait at 29": NO},
    ),
    "memory falls to pieces": (
        [*living(), series("train_fragmented_alloc_retries", f"_x120 {steady(3, 20)}", rank=1)],
        {"MemoryFragmentation at 9": NO, "MemoryFragmentation at 11": YES},
    ),
    "gradients spike": (
        [*living(), series("train_grad_norm_spike_ratio", f"_x60 {steady(20, 10)} stale _x170")],
        {"GradNormSpike at 4": NO, "GradNormSpike at 6": YES, "GradNormSpike at 16": NO},
    ),
    "gradients that are no number spike nowhere": (
        [*living(), series("train_grad_norm_spike_ratio", no_number(30))],
        {"GradNormSpike at 29": NO},
    ),
}


@needs_promtool
@pytest.mark.parametrize("case", CASES)
def test_the_speed_of_a_run(tmp_path: Path, case: str) -> None:
    input_series, expected = CASES[case]
    replay(tmp_path, input_series, expected, rules=SPEED_RULES, alerts=SELDOM)


@needs_promtool
def test_an_outlier_is_one_alert_though_keeper_and_sidecar_tell_it(tmp_path: Path) -> None:
    told = [
        series("train_rank_outlier_ratio", f"_x60 {steady(1.2, 10)} stale", rank=5, host="n0", instance=it)
        for it in ("n0:9466", "keeper:9467")
    ]
    other = series("train_rank_outlier_ratio", steady(1.3, 30), run="r43", rank=1, host="n7")
    mine = {"run": "r42", "rank": "5", "host": "n0"}
    theirs = {"run": "r43", "rank": "1", "host": "n7"}
    replay(
        tmp_path,
        [*living(), *told, other],
        {"RankStepTimeOutlier at 4": [theirs], "RankStepTimeOutlier at 8": [mine, theirs]},
        rules=SPEED_RULES,
        alerts=SELDOM,
    )


@needs_promtool
def test_a_page_says_what_became_of_the_step_time(tmp_path: Path) -> None:
    replay_summary(
        tmp_path,
        [*living(), *step_times(steady(40.5, 30), steady(12, 30)), series("train_step", steady(51300, 30))],
        BY_NAME[SLOWER],
        20,
        "r42: the median step time became 3.4 times as long: 40.5 s, was 12 s in an earlier hour, "
        "step 51300, attempt 0",
    )


@needs_promtool
@pytest.mark.parametrize(
    ("rule", "metric", "value", "said"),
    [
        (
            "DataLoadingWait",
            "train_data_wait_fraction",
            0.5,
            "50% of the step time was spent waiting for data",
        ),
        (
            "MemoryFragmentation",
            "train_fragmented_alloc_retries",
            3.0,
            "memory falls to pieces, 3 retries of allocation within 1h",
        ),
    ],
)
def test_the_worst_rank_is_named(tmp_path: Path, rule: str, metric: str, value: float, said: str) -> None:
    told = [series(metric, steady(value / rank, 30), rank=rank) for rank in (1, 2)]
    replay_summary(tmp_path, [*living(), *told], BY_NAME[rule], 20, f"r42: {said} on rank 1")
