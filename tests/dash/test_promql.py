"""The rules file is one that Prometheus takes, and says the same as the embedded judge."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dash.promtool import NO, YES, needs_promtool, node, promtool, replay, series, steady
from train_ledger.config import Alerts, load
from train_ledger.dash.promql import alerts_yml, expression
from train_ledger.dash.rules import RULES
from train_ledger.run_dir import RunDir


@needs_promtool
@pytest.mark.parametrize(
    "alerts",
    [Alerts(), Alerts(stall_floor_s=0.5, start_up_limit_s=7.25, keep_firing_s=0.0, process_gone_s=0.0)],
    ids=["defaults", "odd numbers"],
)
def test_prometheus_takes_the_file(tmp_path: Path, alerts: Alerts) -> None:
    (tmp_path / "alerts.yml").write_text(alerts_yml(alerts))
    promtool("check", "rules", str(tmp_path / "alerts.yml"))


def _of_any_size(name: str) -> st.SearchStrategy[int | float]:
    if isinstance(getattr(Alerts(), name), int):
        return st.integers(0, 1 << 53)
    return st.sampled_from([0.0, 1e-9, 0.00049, 0.001, 1 / 3, 1.0, 7.77, 61.0, 123_456.789, 1e9])


@needs_promtool
@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.fixed_dictionaries({field.name: _of_any_size(field.name) for field in dataclasses.fields(Alerts)}))
def test_prometheus_takes_the_file_whatever_the_configuration_says(values: dict[str, int | float]) -> None:
    values["evaluation_interval_s"] = max(0.1, values["evaluation_interval_s"])
    values["repeat_interval_s"] = max(1.0, values["repeat_interval_s"])
    with TemporaryDirectory() as folder:
        told = "".join(f"{name} = {value!r}\n" for name, value in values.items())
        (Path(folder) / "train-ledger.toml").write_text(f"[alerts]\n{told}")
        alerts = load(RunDir(Path(folder))).alerts
        (Path(folder) / "alerts.yml").write_text(alerts_yml(alerts))
        promtool("check", "rules", f"{folder}/alerts.yml")


@needs_promtool
def test_a_runbook_s_address_is_no_template(tmp_path: Path) -> None:
    text = alerts_yml(Alerts(), runbook='https://wiki.example.org/{{ query "up" }}/{{x')
    (tmp_path / "alerts.yml").write_text(text)
    promtool("check", "rules", str(tmp_path / "alerts.yml"))
    assert '/{{ \\"{{\\" }} query ' in text


def test_thresholds_are_told_to_the_last_digit() -> None:
    assert expression("$ecc_sbe_growth $stall_floor_s", Alerts(ecc_sbe_growth=1_234_567)) == "1234567 90"


def test_every_rule_is_in_the_file_and_every_threshold_filled_in() -> None:
    text = alerts_yml(Alerts(process_gone_s=77.0), runbook="https://wiki.example.org/runbook")
    for rule in RULES:
        assert f"alert: {rule.name}\n" in text
        assert f'"https://wiki.example.org/runbook#{rule.runbook}"' in text
    assert "[77s]" in text
    own = ("$labels", "$value", '"$1"', "$place", "$it")  # Prometheus'
    left = [word for word in text.split() if "$" in word and not any(it in word for it in own)]
    assert left == []


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("[$loss_window]", "[10m]"),
        ("> $loss_window_s", "> 600"),
        ("$stall_factor", "3"),
        ("{{ $labels.run }} {{ $value }}", "{{ $labels.run }} {{ $value }}"),
    ],
)
def test_thresholds_are_numbers_or_durations(template: str, filled: str) -> None:
    assert expression(template, Alerts()) == filled


STALL = "TrainingStepStalled"


@needs_promtool
@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (node(stops=30), {f"{STALL} at 29": NO}),
        (node(), {f"{STALL} at 11.5": NO, f"{STALL} at 11.6": YES, f"{STALL} at 29": YES}),
        (
            node(skew=600) + node("n1:9466", ranks=range(2, 4), skew=-200),
            {f"{STALL} at 11.5": NO, f"{STALL} at 11.7": YES},
        ),
        (node(stops=30, skew=-900) + node("n1:9466", ranks=range(2, 4), stops=30), {f"{STALL} at 29": NO}),
        (node(alive=10), {f"{STALL} at 11.5": NO, f"{STALL} at 11.7": YES, f"{STALL} at 29": YES}),
        (
            node() + node("n1:9466", ranks=range(2, 3), stops=30),
            {f"{STALL} at 12": YES},
        ),
        (node(finished=f"{steady(0, 10)} {steady(1, 20)}"), {f"{STALL} at 12": NO, f"{STALL} at 29": NO}),
        (
            node(finished=f"{steady(0, 10)} {steady(1, 2)}", alive=12),
            {f"{STALL} at 29": NO},
        ),
        (
            node(threshold=f"{steady(90, 9.9)} {steady(600, 20)}"),
            {f"{STALL} at 12": NO, f"{STALL} at 20.2": YES},
        ),
    ],
    ids=[
        "healthy",
        "stalled",
        "stalled, two nodes, clocks 800 s apart",
        "healthy, one clock 15 min behind",
        "the exporter dies with the job",
        "one zombie rank still writes",
        "finished",
        "finished, and the exporter left",
        "in a checkpoint",
    ],
)
def test_stalls(tmp_path: Path, nodes: list[dict[str, str]], expected: dict[str, set[str]]) -> None:
    replay(tmp_path, nodes, expected)


@needs_promtool
def test_a_hang_before_the_first_step_is_measured_from_the_start_of_the_attempt(tmp_path: Path) -> None:
    replay(
        tmp_path,
        node(ranks=range(0), minutes=40, threshold=steady(1800, 40)),
        {f"{STALL} at 29.9": NO, f"{STALL} at 30.2": YES},
    )


@needs_promtool
def test_a_node_that_the_run_has_left_does_not_count(tmp_path: Path) -> None:
    left = node("n1:9466", ranks=range(2, 8), stops=10, alive=10)
    kept = node(stops=30, restarts=f"{steady(0, 10.2)} {steady(1, 20)}")
    replay(tmp_path, left + kept, {f"{STALL} at 13": NO, f"{STALL} at 29": NO})


@needs_promtool
def test_two_runs_do_not_hide_each_other(tmp_path: Path) -> None:
    other = [{**each, "series": each["series"].replace("r42", "r43")} for each in node("n1:9466", stops=30)]
    replay(tmp_path, node() + other, {f"{STALL} at 12": YES})


@needs_promtool
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (steady(0, 30), {"at 20": NO}),
        (f"{steady(0, 10)} {steady(1, 20)}", {"at 10": NO, "at 10.2": YES, "at 19": YES, "at 26": NO}),
        (f"_x140 {steady(1, 20)}", {"at 12": NO}),
    ],
    ids=["none", "one step between two scrapes", "an old one, first scraped long after it"],
)
def test_a_loss_that_is_not_finite(tmp_path: Path, values: str, expected: dict[str, set[str]]) -> None:
    counter = series("train_loss_nonfinite_total", values, rank=1)
    named = {f"TrainingLossNotFinite {when}": runs for when, runs in expected.items()}
    replay(tmp_path, [*node(stops=30), counter], named)


@needs_promtool
def test_a_loss_that_was_not_finite_from_the_first_scrape_of_a_young_run(tmp_path: Path) -> None:
    counter = series("train_loss_nonfinite_total", f"_x24 {steady(1, 28)}", rank=1)
    replay(tmp_path, [*node(stops=30), counter], {"TrainingLossNotFinite at 2.2": YES})


@needs_promtool
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (f"{steady(0, 5)} {steady(1, 5)} {steady(2, 5)} {steady(2, 30)}", {"at 20": NO}),
        (
            f"{steady(0, 5)} {steady(1, 5)} {steady(2, 5)} {steady(3, 45)}",
            {"at 15": NO, "at 15.5": YES, "at 44": NO},
        ),
        (f"_x60 {steady(3, 40)}", {"at 5.5": YES}),
    ],
    ids=["two", "three", "born at three in a young run"],
)
def test_restart_loops(tmp_path: Path, values: str, expected: dict[str, set[str]]) -> None:
    named = {f"TrainingRestartLoop {when}": runs for when, runs in expected.items()}
    replay(tmp_path, node(stops=45, minutes=45, restarts=values), named)


@needs_promtool
def test_an_exporter_that_comes_to_an_old_run_tells_no_old_restarts_but_new_ones(tmp_path: Path) -> None:
    restarts = f"_x600 {steady(7, 10)} {steady(8, 2)} {steady(9, 2)} {steady(10, 6)}"
    replay(
        tmp_path,
        node(stops=70, minutes=70, restarts=restarts),
        {"TrainingRestartLoop at 55": NO, "TrainingRestartLoop at 64.5": YES},
    )


@needs_promtool
def test_checkpoints(tmp_path: Path) -> None:
    state = series("train_ckpt_failed_total", f"{steady(0, 10)} {steady(1, 100)}")
    expected = {"at 9": NO, "at 10.5": YES, "at 69": YES, "at 77": NO}
    named = {f"CheckpointSaveFailed {when}": runs for when, runs in expected.items()}
    replay(tmp_path, [*node(stops=100, minutes=100), state], named)


@needs_promtool
def test_slow_and_missing_checkpoints(tmp_path: Path) -> None:
    slow = series("train_ckpt_slow_saves", f"{steady(0, 5)} {steady(1, 5)} {steady(2, 20)}")
    replay(
        tmp_path,
        [*node(stops=30), slow],
        {"CheckpointSaveFailed at 9": NO, "CheckpointSaveFailed at 10.5": YES},
    )
    due = series("train_ckpt_due_timestamp_seconds", steady(600 + 300, 30))
    replay(
        tmp_path,
        [*node(stops=30, skew=300), due],
        {"CheckpointSaveFailed at 9.9": NO, "CheckpointSaveFailed at 10.2": YES},
    )


@needs_promtool
def test_a_process_that_is_gone_for_two_minutes_and_no_new_attempt(tmp_path: Path) -> None:
    gone = series("train_process_up", f"{steady(1, 10)} {steady(0, 20)}", rank=1)
    replay(
        tmp_path,
        [*node(stops=30), gone],
        {"TrainingProcessGone at 12": NO, "TrainingProcessGone at 12.3": YES},
    )
    back = series("train_process_up", f"{steady(1, 10)} {steady(0, 1.5)} {steady(1, 18)}", rank=1)
    replay(tmp_path, [*node(stops=30), back], {"TrainingProcessGone at 13": NO})


@needs_promtool
def test_an_exporter_that_dies_does_not_bring_back_processes_that_were_gone_before_a_restart(
    tmp_path: Path,
) -> None:
    up = series("train_process_up", f"{steady(1, 2)} {steady(0, 1.5)} {steady(1, 6)}", rank=1)
    gone = series("train_process_gone_timestamp_seconds", f"_x25 {steady(115, 1.5)} stale", rank=1)
    replay(
        tmp_path,
        [*node(stops=30, alive=10), up, gone],
        {"TrainingProcessGone at 9": NO, "TrainingProcessGone at 11": NO, "TrainingProcessGone at 20": NO},
    )


@needs_promtool
def test_an_exporter_that_dies_while_a_run_stands_makes_no_checkpoint_overdue(tmp_path: Path) -> None:
    due = series("train_ckpt_due_timestamp_seconds", f"{steady(400, 6)} {' '.join(['NaN'] * 48)}")
    replay(
        tmp_path,
        [*node(stops=6, alive=10), due],
        {"CheckpointSaveFailed at 9": NO, "CheckpointSaveFailed at 11": NO, "CheckpointSaveFailed at 20": NO},
    )


@needs_promtool
def test_a_restart_is_on_record_for_half_an_hour(tmp_path: Path) -> None:
    restarting = series("train_run_state", f"{steady(0, 5)} {steady(1, 60)}", state="restarting")
    replay(
        tmp_path,
        [*node(stops=60, minutes=60), restarting],
        {"TrainingRestarting at 4": NO, "TrainingRestarting at 6": YES, "TrainingRestarting at 36": NO},
    )
