"""What Prometheus says of a run as a whole: where it stands, and whether its hours were worth it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dash.promtool import (
    NO,
    YES,
    Expected,
    counting,
    needs_promtool,
    no_number,
    node,
    recorded,
    replay,
    replay_summary,
    series,
    steady,
)
from train_ledger.config import Alerts
from train_ledger.dash.rules import RULES

pytestmark = needs_promtool
BY_NAME = {rule.name: rule for rule in RULES}


def restarting(values: str) -> dict[str, str]:
    return series("train_run_state", values, state="restarting")


def test_where_the_run_stands_is_remembered_of_an_exporter_that_died(tmp_path: Path) -> None:
    nodes = [
        *node(alive=10, restarts=steady(2, 10)),
        series("train_step", steady(1234, 10), rank=0),
        series("train_step", steady(1235, 10), rank=1),
        restarting(steady(1, 10)),
    ]
    wanted = {"run:train_step:last": 1235.0, "run:train_restart:count": 2.0, "run:train_restarting:bool": 1.0}
    recorded(tmp_path, nodes, 12, wanted)


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ([], ", attempt 2"),
        ([series("train_step", steady(51_300, 30), rank=0)], ", step 51300, attempt 2"),
        (
            [series("train_step", steady(51_300, 30), rank=0), restarting(steady(1, 30))],
            ", step 51300, attempt 2, restart under way (no. 2)",
        ),
        ([restarting(steady(0, 30))], ", attempt 2"),
    ],
    ids=["no step known", "running", "restarting", "not restarting"],
)
def test_a_summary_says_where_the_run_stands_as_far_as_it_is_known(
    tmp_path: Path, more: list[dict[str, str]], place: str
) -> None:
    summary = f"r42: no step completed for 1m 45s{place}"
    nodes = node(restarts=steady(2, 30))
    replay_summary(tmp_path, [*nodes, *more], BY_NAME["TrainingStepStalled"], 11.75, summary)


# -- effective training time: an hour is the window here, and judged from a quarter of it on

HOURLY = Alerts(effective_window_s=3600.0, effective_from_age_s=900.0, evaluation_interval_s=30.0)
LOW = "EffectiveTrainingTimeLow"


def productive(
    *pieces: tuple[float, float],
    instance: str = "n0:9466",
    since: float = 0.001,
    skew: float = 0,
    waits: float = 0,
) -> list[dict[str, str]]:
    """An exporter that comes after `waits`; pieces are minutes and how much of them was productive."""
    alive = sum(minutes for minutes, _ in pieces)
    before = f"_x{round(waits * 12)} " if waits else ""
    values, total = [], 0.0
    for minutes, share in pieces:
        values.append(counting(total, minutes, by=5 * share))
        total += minutes * 60 * share
    return [
        series(
            "train_exporter_clock_seconds", before + counting(waits * 60 + skew, alive), instance=instance
        ),
        series("train_productive_seconds_total", before + " ".join(values), instance=instance),
        series(
            "train_productive_since_timestamp_seconds",
            before + steady(since + skew, alive),
            instance=instance,
        ),
        series("train_restart_total", before + steady(0, alive), instance=instance),
        series("train_run_finished", before + steady(0, alive), instance=instance),
    ]


def restarted(nodes: list[dict[str, str]], values: str) -> list[dict[str, str]]:
    """The same with other values of train_restart_total."""
    return [{**it, "values": values} if "train_restart_total" in it["series"] else it for it in nodes]


def finished(nodes: list[dict[str, str]], values: str) -> list[dict[str, str]]:
    return [{**it, "values": values} if "train_run_finished" in it["series"] else it for it in nodes]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (productive((120, 0.95)), {20: NO, 60: NO, 119: NO}),
        (productive((60, 0.95), (60, 0)), {60: NO, 64: NO, 68: YES, 119: YES}),
        (productive((60, 0.95)), {60: NO, 64: NO, 68: YES, 90: YES, 118: YES, 150: NO}),
        (productive((14, 0.1), (100, 0.95)), {5: NO, 14: NO, 15.5: YES, 30: YES, 85: NO}),
        (productive((120, 0.95), instance="n0:9466") + productive((60, 0.95), instance="n1:9466"), {119: NO}),
        (
            productive((60, 0.95), skew=600) + productive((60, 0.95), instance="n1:9466", skew=-900),
            {64: NO, 69: YES},
        ),
        (
            productive((60, 0.95)) + productive((30, 0.9), instance="n1:9466", since=5400, waits=90),
            {89: YES, 97: NO, 119: NO},
        ),
        (
            restarted(productive((120, 0.0)), steady(0, 120))
            + restarted(
                productive((100, 0.9), instance="n1:9466", waits=10, since=600), f"_x120 {steady(1, 100)}"
            ),
            {9: NO, 30: NO, 80: NO, 105: NO},
        ),
        (productive((40, 0.5), waits=60, since=-90_000), {65: YES, 99: YES}),
        (productive((40, 0.5), waits=60, since=3600), {70: NO, 77: YES}),
        (
            [
                series("train_exporter_clock_seconds", counting(0, 120)),
                series("train_productive_seconds_total", f"{counting(0, 90, 4.75)} {counting(0, 30, 4.75)}"),
                series("train_productive_since_timestamp_seconds", f"{steady(0.001, 90)} {steady(5400, 30)}"),
            ],
            {89: NO, 95: NO, 106: NO, 119: NO},
        ),
        (
            finished(productive((60, 0.95)), f"{steady(0, 55)} {steady(1, 5)}"),
            {64: NO, 70: NO, 118: NO, 125: NO},
        ),
        (
            [
                {**it, "values": no_number(120)} if "productive_seconds" in it["series"] else it
                for it in productive((120, 0.5))
            ],
            {60: NO, 119: NO},
        ),
    ],
    ids=[
        "healthy",
        "it stands, the exporter lives",
        "it died with its exporter, and is forgotten after a window",
        "a bad start is told when it is old enough, and heals",
        "one of two nodes is gone",
        "two nodes die, clocks 25 min apart",
        "an exporter that comes later takes over",
        "an exporter of nodes that the run has left",
        "Prometheus came late to a bad run",
        "an exporter that came late knows nothing of before",
        "an exporter that lost its memory counts anew",
        "the run ended and its exporter left",
        "no number",
    ],
)
def test_effective_time(tmp_path: Path, nodes: list[dict[str, str]], expected: dict[float, set[str]]) -> None:
    named = {f"{LOW} at {minute}": runs for minute, runs in expected.items()}
    replay(tmp_path, nodes, named, alerts=HOURLY)


def test_the_effective_time_of_one_run_does_not_hide_that_of_another(tmp_path: Path) -> None:
    other = [
        {**it, "series": it["series"].replace("r42", "r43")}
        for it in productive((90, 0.95), instance="n1:9466")
    ]
    replay(
        tmp_path,
        [*productive((90, 0.5)), *other],
        {f"{LOW} at 80": YES},
        alerts=HOURLY,
    )


# -- data

DATA = "DataPositionRegressed"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (steady(0, 100), {50: NO}),
        (f"{steady(0, 10)} {steady(1, 100)}", {9: NO, 10.5: YES, 69: YES, 77: NO}),
        (f"{steady(0, 10)} {steady(1, 1)}", {10.5: YES, 40: YES}),
        (f"_x60 {steady(1, 50)}", {5.5: YES}),
        (no_number(100), {50: NO}),
        ("_x1", {50: NO}),
    ],
    ids=[
        "never",
        "once",
        "and the exporter dies",
        "before the first scrape of a young run",
        "NaN",
        "missing",
    ],
)
def test_data_that_went_back(tmp_path: Path, values: str, expected: dict[float, set[str]]) -> None:
    counter = series("train_data_position_regressed_total", values)
    named = {f"{DATA} at {minute}": runs for minute, runs in expected.items()}
    replay(tmp_path, [*node(stops=100, minutes=100), counter], named, alerts=SELDOM)


def test_data_that_went_back_are_one_alert_of_one_run_however_many_nodes_say_so(tmp_path: Path) -> None:
    told = f"{steady(0, 10)} {steady(1, 20)}"
    nodes = [
        *node(stops=30),
        *node("n1:9466", stops=30),
        series("train_data_position_regressed_total", told),
        series("train_data_position_regressed_total", told, instance="n1:9466"),
        series("train_data_position_regressed_total", steady(0, 30), instance="n2:9466", run="r43"),
    ]
    replay(tmp_path, nodes, {f"{DATA} at 20": YES})


# -- telemetry

LOST = "TrainingTelemetryLost"
SELDOM = Alerts(evaluation_interval_s=10.0)
N1 = ({"run": "r42", "host": "n1"},)
RUN = ({"run": "r42"},)


def seen(
    host: str,
    *,
    stops: float = 30,
    alive: float = 30,
    hangs: float | None = None,
    skew: float = 0,
    **others: Any,
) -> list[dict[str, str]]:
    """A node of one host whose ranks write for `stops` minutes; its exporter reads until it `hangs`."""
    instance = f"{host}:9466"
    wrote = min(stops, alive, alive if hangs is None else hangs)
    times = counting(skew, wrote) + (f" {steady(skew + wrote * 60, alive - wrote)}" if alive > wrote else "")
    age = steady(0, alive) if hangs is None else f"{steady(0, hangs)} {counting(0, alive - hangs)}"
    return [
        *node(instance, stops=wrote, alive=alive, skew=skew, **others),
        series("train_exporter_poll_age_seconds", age, instance=instance),
        series("train_host_heard_timestamp_seconds", times, instance=instance, host=host),
        series("train_host_stepped_timestamp_seconds", times, instance=instance, host=host),
    ]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (seen("n0") + seen("n1"), {5: NO, 29: NO}),
        (seen("n0") + seen("n1", stops=10), {14.9: NO, 15.5: N1, 29: N1}),
        (seen("n0") + seen("n1", alive=10), {14.9: NO, 15.5: N1, 29: N1}),
        (seen("n0") + seen("n1", hangs=10), {14.9: NO, 15.5: N1, 29: N1}),
        (seen("n0", skew=-700) + seen("n1", stops=10, skew=600), {14.9: NO, 15.5: N1}),
        (seen("n0", skew=-700) + seen("n1", skew=600), {29: NO}),
        (seen("n0", stops=10) + seen("n1", stops=10), {15.5: NO, 29: NO}),
        (seen("n0", stops=10) + seen("n1", alive=10), {14.9: NO, 15.5: N1}),
        (seen("n0", alive=10) + seen("n1", alive=10), {14.9: NO, 15.5: RUN, 29: RUN}),
        (seen("n0", alive=10, threshold=steady(600, 10)), {15.5: NO, 19.9: NO, 20.5: RUN}),
        (seen("n0") + seen("n1", stops=10, threshold=steady(600, 30)), {19.9: NO, 20.5: N1}),
        (
            seen("n0", restarts=f"{steady(0, 9)} {steady(1, 21)}") + seen("n1", alive=10),
            {15.5: NO, 29: NO},
        ),
        (
            [
                *seen("n0", alive=10),
                series("train_run_state", steady(1, 10), state="stalled", instance="n0:9466"),
            ],
            {15.5: NO, 29: NO},
        ),
        (seen("n0", alive=10, finished=steady(1, 10)), {15.5: NO, 29: NO}),
        (
            seen("n0") + [{**it, "values": no_number(30)} for it in seen("n1") if "host_" in it["series"]],
            {29: NO},
        ),
    ],
    ids=[
        "healthy",
        "a host falls silent",
        "a host dies with its exporter",
        "an exporter does not get to its files",
        "a host falls silent, clocks 20 min apart",
        "healthy, clocks 20 min apart",
        "all hosts stand",
        "all hosts stand, one of them with its exporter gone",
        "all exporters die",
        "the exporter dies in a checkpoint",
        "a host in a long checkpoint alone",
        "a host that was left with a new attempt",
        "the exporter said that the run stands before it died",
        "the run ended before its exporter left",
        "no numbers",
    ],
)
def test_telemetry(tmp_path: Path, nodes: list[dict[str, str]], expected: dict[float, Expected]) -> None:
    named = {f"{LOST} at {minute}": labels for minute, labels in expected.items()}
    replay(tmp_path, nodes, named, alerts=SELDOM)


def test_a_run_that_cannot_be_read_is_not_hidden_by_another(tmp_path: Path) -> None:
    other = [{**it, "series": it["series"].replace("r42", "r43")} for it in seen("n1")]
    replay(
        tmp_path,
        [*seen("n0", alive=10), *other],
        {f"{LOST} at 16": RUN},
        alerts=SELDOM,
    )


def test_what_seems_old_after_a_pause_of_prometheus_is_asked_of_a_judge_that_is_awake() -> None:
    assert "train:judge_awake:bool" in BY_NAME[LOST].promql
    assert "train:judge_awake:bool" in BY_NAME["TrainingStepStalled"].promql


# -- what is remembered of an exporter that died

NAN, RESTARTING, SAVE, SLOW = (
    "TrainingLossNotFinite",
    "TrainingRestarting",
    "CheckpointSaveFailed",
    "CheckpointSlow",
)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            [series("train_loss_is_finite", f"{steady(1, 8)} {steady(0, 2)}", rank=1)],
            {f"{NAN} at 7": NO, f"{NAN} at 9": YES, f"{NAN} at 15": YES, f"{NAN} at 29": YES},
        ),
        (
            [series("train_loss_nonfinite_total", f"{steady(0, 8)} {steady(1, 2)}", rank=1)],
            {f"{NAN} at 9": YES, f"{NAN} at 15": YES, f"{NAN} at 25": NO},
        ),
        (
            [series("train_ckpt_slow_saves", f"{steady(0, 8)} {steady(2, 2)}")],
            {f"{SAVE} at 7": NO, f"{SAVE} at 9": YES, f"{SAVE} at 29": YES},
        ),
        (
            [series("train_ckpt_due_timestamp_seconds", steady(500, 10))],
            {f"{SAVE} at 8": NO, f"{SAVE} at 9": YES, f"{SAVE} at 29": YES},
        ),
        (
            [series("train_ckpt_due_timestamp_seconds", steady(900, 10))],
            {f"{SAVE} at 9": NO, f"{SAVE} at 29": NO},
        ),
        (
            [series("train_ckpt_failed_total", f"{steady(0, 8)} {steady(1, 2)}")],
            {f"{SAVE} at 7": NO, f"{SAVE} at 9": YES, f"{SAVE} at 29": YES},
        ),
        ([restarting(steady(1, 10))], {f"{RESTARTING} at 9": YES, f"{RESTARTING} at 25": YES}),
    ],
    ids=[
        "the last loss was no number",
        "one was not",
        "two slow saves",
        "a save that was overdue",
        "a save that fell due later, when nothing was heard any more",
        "the first failed save",
        "a restart",
    ],
)
def test_what_fires_when_an_exporter_dies_goes_on(
    tmp_path: Path, more: list[dict[str, str]], expected: dict[str, set[str]]
) -> None:
    replay(tmp_path, [*node(alive=10), *more], expected, alerts=SELDOM)


def test_a_loss_on_a_node_that_was_swapped_out_is_not_told_for_ever(tmp_path: Path) -> None:
    left = [
        *node("n1:9466", ranks=range(2, 4), stops=10),
        series("train_loss_is_finite", steady(0, 30), instance="n1:9466", rank=2),
        series("train_loss_nonfinite_total", f"{steady(0, 9)} {steady(1, 21)}", instance="n1:9466", rank=2),
    ]
    kept = node(stops=30, restarts=f"{steady(0, 10)} {steady(1, 20)}")
    expected = {f"{NAN} at 9.5": YES, f"{NAN} at 16": NO, f"{NAN} at 29": NO}
    replay(tmp_path, [*left, *kept], expected, alerts=SELDOM)


def test_a_loss_of_an_attempt_that_is_over_is_not_one_of_the_next(tmp_path: Path) -> None:
    counter = series("train_loss_nonfinite_total", f"{steady(0, 8)} {steady(1, 2)} {steady(0, 20)}", rank=1)
    restarts = f"{steady(0, 10)} {steady(1, 20)}"
    replay(
        tmp_path,
        [*node(stops=30, restarts=restarts), counter],
        {f"{NAN} at 9": YES, f"{NAN} at 16": NO},
        alerts=SELDOM,
    )


@pytest.mark.parametrize(
    ("ratios", "lasted_s", "fires"),
    [
        (f"{steady(1.1, 5)} {steady(1.6, 20)}", 80, True),
        (f"{steady(1.1, 5)} {steady(1.4, 20)}", 80, False),
        (steady(3, 25), 20, False),
        (no_number(25), 80, False),
        ("_x1", 80, False),
    ],
    ids=["slower", "a little", "too short to matter", "no number", "not known"],
)
def test_slow_saves_go_on_record(tmp_path: Path, ratios: str, lasted_s: float, fires: bool) -> None:
    nodes = [
        *node(stops=25),
        *node("n1:9466", stops=25),
        series("train_ckpt_duration_ratio", ratios),
        series("train_ckpt_duration_ratio", ratios, instance="n1:9466"),
        series("train_ckpt_duration_s", steady(lasted_s, 25)),
    ]
    replay(tmp_path, nodes, {f"{SLOW} at 20": YES if fires else NO}, alerts=SELDOM)
