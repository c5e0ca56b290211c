"""What exporters and rules of this kind are known to do wrong: one case a defect, by its number.

D is what the printed exporter and rules did, B what others have reported. Where a defect has its case beside
the rule or the reader that it is of, it does not stand here again. Most cases are of one kind: whom an alert
must not name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dash.backtest.made import Made
from dash.promtool import counting, needs_promtool, promtool, replay, replay_summary, series, steady
from train_ledger.config import Alerts, Config
from train_ledger.dash.exposition import Exposition
from train_ledger.dash.judge import Judge
from train_ledger.dash.promql import expression
from train_ledger.dash.rule import Rule
from train_ledger.dash.rules import RULES
from train_ledger.dash.rules.gpus.xid_recordings import XID_RECORDINGS
from train_ledger.dash.rules.hardware import HARDWARE_RULES
from train_ledger.ledger import Fold
from train_ledger.ledger.state import RunState

Series = list[dict[str, str]]
NOBODY: list[dict[str, str]] = []
BY_NAME = {rule.name: rule for rule in RULES}


def then(*parts: tuple[float, float]) -> str:
    """Values, each for so many minutes."""
    return " ".join(f"{value:g}x{round(minutes * 12) - 1}" for value, minutes in parts)


def rank_of(rank: int, node: str, minutes: float = 40, run: str = "r42", **place: Any) -> Series:
    """A rank whose exporter is scraped at `node`; its host, gpu and uuid as far as they are named."""
    of_exporter = {"run": run, "instance": f"{node}:9466"}
    return [
        series("train_rank_info", steady(1, minutes), rank=rank, **place, **of_exporter),
        series("train_exporter_clock_seconds", counting(0, minutes), **of_exporter),
        series("train_restart_total", steady(0, minutes), **of_exporter),
        series("train_run_finished", steady(0, minutes), **of_exporter),
        series("train_run_started_timestamp_seconds", steady(-9e5, minutes), **of_exporter),
    ]


def dcgm(name: str, values: str, node: str, uuid: str, gpu: int = 5, **host: str) -> dict[str, str]:
    labels = {"UUID": uuid, "gpu": str(gpu), "instance": f"{node}:9400", **host}
    inner = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"DCGM_FI_DEV_{name}{{{inner}}}", "values": values}


def failing(node: str, uuid: str, **host: str) -> Series:
    """A GPU that has an XID and an uncorrected error in minute 10."""
    return [
        dcgm("GPU_TEMP", steady(60, 40), node, uuid, **host),
        dcgm("XID_ERRORS", then((0, 10), (79, 30)), node, uuid, **host),
        dcgm("ECC_DBE_VOL_TOTAL", then((0, 10), (1, 30)), node, uuid, **host),
    ]


def well(node: str, uuid: str, **host: str) -> Series:
    return [
        dcgm("GPU_TEMP", steady(60, 40), node, uuid, **host),
        dcgm("XID_ERRORS", steady(0, 40), node, uuid, **host),
        dcgm("ECC_DBE_VOL_TOTAL", steady(0, 40), node, uuid, **host),
    ]


def ports(values: str, node: str, **host: str) -> dict[str, str]:
    inner = ",".join(
        f'{key}="{value}"' for key, value in {"device": "mlx5_0", "instance": f"{node}:9100", **host}.items()
    )
    return {"series": f"node_infiniband_symbol_error_total{{{inner}}}", "values": values}


BAD_PORT = then((0, 10), (5, 30))
R5 = {"run": "r42", "rank": "5", "host": "n0", "gpu": "5"}
R13 = {"run": "r42", "rank": "13", "host": "n1", "gpu": "5"}
TWO_HOSTS = [*rank_of(5, "n0", host="n0", gpu=5), *rank_of(13, "n1", host="n1", gpu=5)]

WHOSE: dict[str, tuple[Series, list[dict[str, str]]]] = {
    "B7: both exporters call their host localhost": (
        [*TWO_HOSTS, *well("n0", "A", Hostname="localhost"), *failing("n1", "B", Hostname="localhost")],
        [R13],
    ),
    "B5, B7: the ranks' host is localhost, too": (
        [
            *rank_of(5, "n0", host="localhost", gpu=5),
            *rank_of(13, "n1", host="localhost", gpu=5),
            *well("n0", "A", hostname="localhost"),
            *failing("n1", "B", hostname="localhost"),
        ],
        [{**R13, "host": "localhost"}],
    ),
    "B8: GPU 5 of a node that no rank is on": (
        [*TWO_HOSTS, *well("n0", "A", Hostname="n0"), *failing("n9", "B", Hostname="n9")],
        NOBODY,
    ),
    "B8: neither the rank's host nor the card's is known": (
        [*rank_of(5, "n0", gpu=5), *failing("n9", "B")],
        NOBODY,
    ),
    "D47: a host with its domain by dcgm-exporter and without it by the rank": (
        [
            *rank_of(5, "10.0.0.1", host="n0", gpu=5),
            *rank_of(13, "10.0.0.2", host="n1", gpu=5),
            *well("n0.c.example", "A", Hostname="n0.c.example"),
            *failing("n1.c.example", "B", hostname="n1.c.example"),
        ],
        [R13],
    ),
    "D48: two clusters with hosts of the same names under one Prometheus": (
        [
            *rank_of(5, "10.0.0.1", host="n0", gpu=5),
            *rank_of(5, "10.9.0.1", run="other", host="n0", gpu=5),
            *failing("10.0.0.1", "A", Hostname="n0"),
            *well("10.9.0.1", "B", Hostname="n0"),
        ],
        [R5],
    ),
    "D48: the other cluster has no run, and its host's card fails": (
        [
            *rank_of(5, "10.0.0.1", host="n0", gpu=5),
            *well("10.0.0.1", "A", Hostname="n0"),
            *failing("10.9.0.1", "B", Hostname="n0"),
        ],
        NOBODY,
    ),
    "D48: one exporter tells of all hosts of the run, and the card beside it fails": (
        [
            *rank_of(5, "login", host="n0", gpu=5),
            *rank_of(13, "login", host="n1", gpu=5),
            *failing("login", "A", Hostname="login"),
            *well("n1", "B", Hostname="n1"),
        ],
        NOBODY,
    ),
    "D48: one exporter tells of all hosts of the run, and a card of one fails": (
        [
            *rank_of(5, "login", host="n0", gpu=5),
            *rank_of(13, "login", host="n1", gpu=5),
            *failing("n1", "B", Hostname="n1"),
        ],
        [R13],
    ),
    "D48: some ranks name their card and some do not": (
        [
            *rank_of(5, "n0", host="n0", gpu=5, uuid="A"),
            *rank_of(13, "n1", host="n1", gpu=5),
            *well("n0", "A", Hostname="n0"),
            *failing("n1", "B", Hostname="n1"),
        ],
        [R13],
    ),
}


def judge_hardware(tmp_path: Path, given: Series, expected: dict[str, list[dict[str, str]]]) -> None:
    replay(tmp_path, given, expected, rules=HARDWARE_RULES, alerts=Alerts(evaluation_interval_s=15))


@needs_promtool
@pytest.mark.slow
@pytest.mark.parametrize("case", WHOSE)
def test_whose_card_it_is(case: str, tmp_path: Path) -> None:
    given, named = WHOSE[case]
    xids = [{**it, "xid": "79"} for it in named]
    judge_hardware(tmp_path, given, {"GpuXidError at 15": xids, "GpuEccDbe at 15": named})


@needs_promtool
@pytest.mark.slow
def test_b6_a_card_that_was_replaced_is_not_one_that_is_gone(tmp_path: Path) -> None:
    given = [
        *rank_of(5, "n0", host="n0", gpu=5),
        *rank_of(4, "n0", host="n0", gpu=4),
        dcgm("GPU_TEMP", then((60, 10)), "n0", "OLD", Hostname="n0"),
        dcgm("GPU_TEMP", f"_x119 {steady(60, 30)}", "n0", "NEW", Hostname="n0"),
        dcgm("GPU_TEMP", then((60, 20)), "n0", "C", gpu=4, Hostname="n0"),
        dcgm("GPU_TEMP", steady(60, 40), "n0", "D", gpu=3, Hostname="n0"),
    ]
    lost = [{**R5, "rank": "4", "gpu": "4"}]
    judge_hardware(tmp_path, given, {"GpuLost at 15": NOBODY, "GpuLost at 28": lost})


@needs_promtool
@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "hosts"),
    [
        ([*rank_of(0, "n0"), ports(BAD_PORT, "n9")], []),
        ([*rank_of(0, "n0", host="localhost"), ports(BAD_PORT, "n9", host="localhost")], []),
        (
            [
                *rank_of(0, "login", host="n0"),
                *rank_of(8, "login", host="n1"),
                ports(BAD_PORT, "login"),
                ports(BAD_PORT, "n1.c.example"),
            ],
            ["n1"],
        ),
        (
            [
                *rank_of(0, "10.0.0.1", host="n0"),
                *rank_of(0, "10.9.0.1", run="other", host="n0"),
                ports(BAD_PORT, "10.0.0.1", host="n0"),
                ports(steady(0, 40), "10.9.0.1", host="n0"),
            ],
            ["n0"],
        ),
    ],
    ids=["no host is known", "localhost", "one exporter for all hosts", "two clusters"],
)
def test_b8_whose_port_it_is(given: Series, hosts: list[str], tmp_path: Path) -> None:
    named = [{"run": "r42", "host": host, "device": "mlx5_0"} for host in hosts]
    judge_hardware(tmp_path, given, {"NicErrors at 15": named})


@needs_promtool
def test_b1_a_code_that_stood_there_before_prometheus_was_away_is_not_news(tmp_path: Path) -> None:
    """The rule is asked once, ten minutes after the last evaluation; the code is from minute 1."""
    uuid_and_place = {"uuid": "A", "host": "n0", "gpu": "5", "node": "n0", "xid": "79"}
    since = series("gpu_xid:dcgm:since_seconds", steady(60, 20), **uuid_and_place)
    known = {
        "series": since["series"].replace('run="r42",instance="n0:9466",', ""),
        "values": since["values"],
    }
    told = [dcgm("XID_ERRORS", steady(79, 31), "n0", it, Hostname="n0") for it in ("A", "B")]
    awake = {"series": "train:judge_awake:bool", "values": steady(1, 20)}
    rule = next(it.promql for it in XID_RECORDINGS if it.name == "gpu_xid:dcgm:since_seconds")
    asked = {
        "expr": f"max by (uuid) ({expression(rule, Alerts())})",
        "eval_time": "30m",
        "exp_samples": [
            {"labels": '{uuid="A"}', "value": 60},
            {"labels": '{uuid="B"}', "value": 1800},
        ],
    }
    test = {"interval": "5s", "input_series": [known, awake, *told], "promql_expr_test": [asked]}
    (tmp_path / "test.yml").write_text(json.dumps({"evaluation_interval": "5s", "tests": [test]}))
    promtool("test", "rules", str(tmp_path / "test.yml"))


# -- the end of a run


def ends(rank: int, node: str, at: float | None, minutes: float = 120) -> Series:
    """A host whose rank completes steps for ten minutes, and says `at` which minute that it has ended."""
    of_exporter = {"instance": f"{node}:9466"}
    over = steady(0, minutes) if at is None else then((0, at), (1, minutes - at))
    return [
        series("train_exporter_clock_seconds", counting(0, minutes), **of_exporter),
        series("train_run_finished", over, **of_exporter),
        series("train_stall_threshold_seconds", steady(90, minutes), **of_exporter),
        series("train_restart_total", steady(0, minutes), **of_exporter),
        series(
            "train_last_step_completed_timestamp_seconds",
            f"{counting(0, 10)} {steady(600, minutes - 10)}",
            rank=rank,
            **of_exporter,
        ),
    ]


@needs_promtool
@pytest.mark.slow
def test_d39_a_run_that_ended_is_quiet_for_as_long_as_its_sidecars_live(tmp_path: Path) -> None:
    """Also after its keeper, who knew of all ranks, was forgotten; and where there never was one."""
    keeper = series("train_run_finished", f"{then((0, 10), (1, 2))}", instance="keeper:9467")
    for others in ([keeper], []):
        given = [*ends(0, "n0", 10), *ends(8, "n1", 11), *others]
        replay(tmp_path, given, {f"TrainingStepStalled at {minute}": NOBODY for minute in (12, 60, 115)})


@needs_promtool
@pytest.mark.slow
def test_a_host_whose_ranks_ended_does_not_hide_that_the_others_hang(tmp_path: Path) -> None:
    given = [*ends(0, "n0", 10), *ends(8, "n1", None)]
    replay(tmp_path, given, {"TrainingStepStalled at 12": ["r42"], "TrainingStepStalled at 90": ["r42"]})


def test_d39_a_sidecar_says_of_its_own_ranks_that_they_ended() -> None:
    """It never sees the run_end of the others, and world_size counts them, too."""
    run = Made().start().go(60).event("run_end")
    sidecar = Fold("r42", Config(), {"world_size": 4}, is_part=True)
    for known in run.known:
        if known.what.host == "node1":
            known.fold_into(sidecar)
    over = sidecar.state(run.t + 2000)
    assert (over.state, over.finished) == ("finished", True)
    assert "train_run_finished" not in Exposition(Config()).text(RunState("r42", 0.0, is_part=True))


# -- what the pages say


def gone(*ranks: int) -> Series:
    """Ranks that were found dead in minute 10."""
    told = [
        series("train_process_up", then((1, 10), (0, 30)), rank=rank, instance="n0:9466") for rank in ranks
    ]
    return [
        *rank_of(0, "n0", host="n0"),
        *told,
        *(
            series(
                "train_process_gone_timestamp_seconds",
                f"_x119 {steady(600, 30)}",
                rank=rank,
                instance="n0:9466",
            )
            for rank in ranks
        ),
    ]


def saves(**values: str) -> Series:
    named = {f"train_ckpt_{name}": told for name, told in values.items()}
    return [*rank_of(0, "n0"), *(series(name, told, instance="n0:9466") for name, told in named.items())]


SAID: dict[str, tuple[str, Series, str]] = {
    "one rank is gone": (
        "TrainingProcessGone",
        gone(3),
        "r42: the process of a rank is gone (rank 3) and no new attempt began, attempt 0",
    ),
    "two are": (
        "TrainingProcessGone",
        gone(3, 5),
        "r42: the processes of 2 ranks are gone (among them rank 3, 5) and no new attempt began, attempt 0",
    ),
    "a save failed": (
        "CheckpointSaveFailed",
        saves(failed_total=then((0, 10), (1, 30))),
        "r42: a checkpoint save failed, or none comes any more, attempt 0",
    ),
    "two slow saves": (
        "CheckpointSaveFailed",
        saves(slow_saves=then((0, 10), (2, 30))),
        "r42: two checkpoint saves in a row took over 3 times the usual, attempt 0",
    ),
    "a save that does not come": (
        "CheckpointSaveFailed",
        saves(due_timestamp_seconds=steady(600, 40)),
        "r42: no checkpoint has come since one was due, attempt 0",
    ),
}


@needs_promtool
@pytest.mark.slow
@pytest.mark.parametrize("case", SAID)
def test_d49_a_page_says_in_one_sentence_what_is_wrong(case: str, tmp_path: Path) -> None:
    name, given, summary = SAID[case]
    replay_summary(tmp_path, given, BY_NAME[name], 15, summary)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.name))
def test_d49_every_alert_says_something_in_one_line_and_where_to_read_on(rule: Rule) -> None:
    assert "\n" not in rule.summary
    assert rule.summary.startswith("{{ $labels.run }}: ")
    assert rule.summary.count("{{ with ") + rule.summary.count("{{ if ") + rule.summary.count(
        "{{ range "
    ) == rule.summary.count("{{ end }}")
    assert rule.runbook == rule.name.lower()


# -- counters


@needs_promtool
@pytest.mark.slow
def test_d30_a_counter_that_fell_counts_anew(tmp_path: Path) -> None:
    """The same name for a new run, which restarts at once again and again."""
    restarts = then((7, 60), (0, 2), (1, 2), (2, 2), (3, 20))
    of_exporter = {"instance": "n0:9466"}
    given = [
        series("train_exporter_clock_seconds", counting(0, 86), **of_exporter),
        series("train_run_finished", steady(0, 86), **of_exporter),
        series("train_restart_total", restarts, **of_exporter),
        series("train_run_started_timestamp_seconds", then((-9e5, 60), (3600, 26)), **of_exporter),
    ]
    expected = {"TrainingRestartLoop at 65": NOBODY, "TrainingRestartLoop at 66.2": ["r42"]}
    replay(tmp_path, given, expected)


def test_d30_a_failed_save_counts_though_hundreds_of_saves_came_after_it() -> None:
    run = Made().start().go(10)
    for number in range(300):
        name = "ckpt_failed" if number in {0, 299} else "ckpt_saved"
        run.event(name, [0], step=10 * number, error="full", duration_s=1.0)
    fold = Fold("r42", Config())
    for known in run.known:
        known.fold_into(fold)
    state = fold.state(run.t)
    assert (len(state.checkpoints.failed), state.checkpoints.failed_before) == (1, 1)
    assert 'train_ckpt_failed_total{run="r42"} 2' in Exposition(Config()).text(state)


# -- one alert for one thing


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.name))
def test_d46_what_is_true_of_the_run_is_one_alert_however_many_ranks_say_so(rule: Rule) -> None:
    of_hardware = {"GpuXidError", "GpuXidRecorded", "GpuEccDbe", "GpuEccSbeGrowing", "GpuLost"}
    of_hardware |= {"GpuClockLow", "GpuClockLowRepeated", "NvlinkErrors", "NicErrors"}
    of_one_place = {"RankStepTimeOutlier", "TrainingTelemetryLost"}
    assert rule.labels == ("run",) or rule.name in of_hardware | of_one_place


def test_b9_what_follows_a_kill_on_all_cards_of_a_host_wakes_nobody() -> None:
    run = Made().start().go(60)
    for rank in run.ranks:
        for _ in range(40):
            run.xid(45, rank)
    assert pages(run) == set()


def test_b10_a_burst_of_one_code_is_one_alert_of_one_card() -> None:
    run = Made().start().go(60)
    for _ in range(1000):
        run.xid(95, 3)
    assert pages(run) == {("GpuXidError", "3", "95")}


def pages(run: Made) -> set[tuple[str, str, str]]:
    """What the embedded judge pages at the last moment: (alert, rank, XID)."""
    fold = Fold("r42", Config(), {"world_size": len(run.ranks)})
    for known in run.known:
        known.fold_into(fold)
    told = Judge().evaluate(fold.state(run.t))
    alerts = [it.alert for it in told if it.alert.level == "page"]
    return {(it.name, it.labels.get("rank", ""), it.labels.get("xid", "")) for it in alerts}
