"""What Prometheus says of a run as a whole: where it stands, and whether its hours were worth it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dash.promtool import needs_promtool, node, recorded, replay_summary, series, steady
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
