"""The metrics of a state: what Prometheus reads is right, typed, escaped, and of this attempt only."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from dash.states import T0, running, with_rank
from train_ledger.config import Config, Limits
from train_ledger.dash.exposition import Exposition
from train_ledger.dash.metric_text import labels
from train_ledger.dash.promql import alerts_yml
from train_ledger.fields import FIELDS
from train_ledger.ledger.hardware.records import GpuState, XidState
from train_ledger.ledger.state import (
    STATES,
    Attempt,
    Checkpoints,
    FailedSave,
    Productive,
    RankState,
    RunState,
)
from train_ledger.ledger.trends import Fragmented, Outlier, Speed, Spike, StepTimes

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parsed(text: str) -> Series:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def exposed(state: RunState, config: Config | None = None) -> Series:
    return parsed(Exposition(config or Config()).text(state))


def of_rank(rank: int, run: str = "r42") -> tuple[tuple[str, str], ...]:
    return (("rank", str(rank)), ("run", run))


RUN = (("run", "r42"),)


def test_fields_of_a_rank_carry_run_and_rank() -> None:
    found = exposed(with_rank(running(t=T0 + 500), 2, values={"loss": 2.5, "mfu": 41.0, "skipped": 3.0}))
    assert found["train_loss", of_rank(2)] == 2.5
    assert found["train_mfu", of_rank(2)] == 41.0
    assert found["train_skipped_total", of_rank(2)] == 3
    assert found["train_skipped_total", of_rank(1)] == 0, "counters are born at 0"
    assert ("train_mfu", of_rank(1)) not in found, "what a rank did not write is not made up"
    assert found["train_step", of_rank(2)] == 100
    assert found["train_last_step_completed_timestamp_seconds", of_rank(2)] == T0 + 500


def test_facts_of_the_run_carry_the_run_alone() -> None:
    saves = Checkpoints(
        saved_t=(T0 + 300.5,), durations_s=(12.0,), failed=(FailedSave(T0 + 400, 90, "full"),), saved_step=60
    )
    found = exposed(running(t=T0 + 500, checkpoints=saves, attempt=0))
    assert found["train_stall_threshold_seconds", RUN] == 90
    assert found["train_step_time_seconds_p50", RUN] == 1
    assert found["train_run_finished", RUN] == 0
    assert found["train_ckpt_failed_total", RUN] == 1
    assert found["train_restart_total", RUN] == 0
    assert found["train_ckpt_last_success_timestamp_seconds", RUN] == T0 + 300.5
    assert found["train_ckpt_duration_s", RUN] == 12
    assert found["train_run_started_timestamp_seconds", RUN] == T0
    states = {name: found["train_run_state", (*RUN, ("state", name))] for name in STATES}
    assert states == {name: float(name == "running") for name in STATES}


def test_what_a_launcher_writes_into_a_line_is_of_the_run() -> None:
    values = {"restart_total": 4.0, "ckpt_failed_total": 2.0, "effective_fraction": 0.93}
    found = exposed(with_rank(running(t=T0 + 500), 0, values=values))
    assert found["train_restart_total", RUN] == 4
    assert found["train_ckpt_failed_total", RUN] == 2
    assert found["train_effective_fraction", RUN] == 0.93
    assert ("train_restart_total", of_rank(0)) not in found


def test_values_that_are_no_finite_numbers_are_said_in_prometheus_words() -> None:
    state = with_rank(
        running(t=T0 + 500),
        1,
        values={"loss": math.nan, "grad_norm": -math.inf},
        nonfinite_step=100,
        nonfinite_total=7,
    )
    found = exposed(state)
    assert math.isnan(found["train_loss", of_rank(1)])
    assert found["train_grad_norm", of_rank(1)] == -math.inf
    assert found["train_loss_is_finite", of_rank(1)] == 0
    assert found["train_loss_is_finite", of_rank(0)] == 1
    assert found["train_loss_nonfinite_total", of_rank(1)] == 7
    assert found["train_loss_nonfinite_total", of_rank(0)] == 0


def test_processes() -> None:
    state = with_rank(with_rank(running(t=T0 + 500), 1, gone_t=T0 + 490), 2, gone_t=T0 + 490, ended=True)
    found = exposed(state)
    assert found["train_process_up", of_rank(0)] == 1
    assert found["train_process_up", of_rank(1)] == 0
    assert ("train_process_up", of_rank(2)) not in found, "a rank that said run_end is neither up nor lost"
    info = (("gpu", "0"), ("host", "node1"), ("rank", "0"), ("run", "r42"))
    assert found["train_rank_info", info] == 1


def test_no_rank_of_an_earlier_attempt_is_left_over() -> None:
    exposition = Exposition(Config())
    exposition.text(running(t=T0 + 500, ranks=8))
    members = {0: RankState(0, attempt=1, heard_t=T0 + 600), 7: RankState(7, attempt=0, step=100)}
    state = RunState(
        "r42", T0 + 601, attempt=1, ranks=members, attempts=(Attempt(0, T0), Attempt(1, T0 + 600))
    )
    found = parsed(exposition.text(state))
    assert {dict(key)["rank"] for _, key in found if "rank" in dict(key)} == {"0"}
    assert ("train_step", of_rank(0)) not in found, "no step is completed yet, and none is made up"
    assert found["train_attempt_started_timestamp_seconds", RUN] == T0 + 600


@given(st.text(), st.text(st.characters(categories=["Cs", "Cc", "L", "P"])))
def test_any_name_survives_the_way_through_a_label(run: str, host: str) -> None:
    state = with_rank(running(t=T0 + 500, run=run, ranks=1), 0, host=host)
    found = exposed(state)
    assert found["train_step", (("rank", "0"), ("run", run.encode("utf-8", "replace").decode()))] == 100


def test_labels_are_escaped() -> None:
    assert labels(run='a"b\\c\nd') == '{run="a\\"b\\\\c\\nd"}'


def test_unknown_fields_are_exported_only_where_asked_for_and_up_to_the_limit() -> None:
    values = {"my/metric": 1.0, "my metric": 2.0, "another": 3.0}
    state = running(t=T0 + 500, ranks=2)
    state = with_rank(with_rank(state, 0, values=values), 1, values=values)
    assert not [name for name, _ in exposed(state) if name.startswith("train_field_")]
    exposition = Exposition(Config(limits=Limits(unknown_fields=True, unknown_field_series=3)))
    found = parsed(exposition.text(state))
    assert {name for name, _ in found if name.startswith("train_field_")} == {"train_field_another"}
    assert exposition.fields_left_out == 2
    plenty = Exposition(Config(limits=Limits(unknown_fields=True)))
    assert ("train_field_my_metric", of_rank(1)) in parsed(plenty.text(state))
    assert plenty.fields_left_out == 1, "two names that become one metric are not mixed"


def test_every_metric_that_the_rules_read_is_exported() -> None:
    saves = Checkpoints(saved_t=tuple(T0 + 100.0 * n for n in range(6)), durations_s=(1.0,) * 6)
    speed = Speed(
        StepTimes(40.0, 12.0, 15, 300, T0 + 600),
        *(30.0, T0 + 600, 40.0),
        spike=Spike(90, T0 + 500, 30.0, 1.0),
        outliers=(Outlier(1, "node1", 1.2, 1.0, 0.1),),
    )
    gpu = GpuState("node1", 0, "GPU-0", ranks=(0, 1), xids=(XidState(79, "page", 1, T0 + 9, T0 + 9),))
    state = running(t=T0 + 600, checkpoints=saves, gpus=(gpu,), speed=speed)
    state = replace(state, productive=Productive(T0, 400.0, 0.67))
    state = with_rank(state, 3, gone_t=T0 + 590)
    state = with_rank(state, 1, data_wait_fraction=0.2, fragmented=Fragmented(3.0, 1e9))
    state = with_rank(state, 0, values=dict.fromkeys(FIELDS, 1.0))
    exported = {name for name, _ in exposed(state)}
    read = set(re.findall(r"(?<![\w:])train_\w+(?![\w:])", alerts_yml(Config().alerts)))
    assert len(read) > 8
    at_the_scrape = {"train_exporter_clock_seconds", "train_exporter_poll_age_seconds"}
    assert read - exported == at_the_scrape, "which the exporter adds"


def test_every_known_field_has_a_metric() -> None:
    state = with_rank(running(t=T0 + 500), 0, values=dict.fromkeys(FIELDS, 1.0))
    exported = {name for name, _ in exposed(state)}
    assert {field.metric for field in FIELDS.values()} <= exported


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (prometheus)")
def test_promtool_can_read_the_metrics() -> None:
    state = with_rank(running(t=T0 + 500), 0, values=dict.fromkeys(FIELDS, 1.0))
    text = Exposition(Config()).text(state)
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=180
    )
    # Names are fixed by the design; promtool's taste in names (`_s`, `_p50`) is not what is asked here.
    taste = (
        "metric names should not contain abbreviated units",
        "non-counter metrics should not have",
        "counter metrics should have",
        "use base unit",
    )
    said = [
        line for line in (done.stderr + done.stdout).splitlines() if not any(each in line for each in taste)
    ]
    assert said == []


def test_what_one_rank_says_anew_is_seen_at_once() -> None:
    exposition = Exposition(Config())
    state = running(t=T0 + 500)
    exposition.text(state)
    again = parsed(exposition.text(replace(state, t=T0 + 501)))
    assert again["train_step", of_rank(2)] == 100
    moved = with_rank(state, 2, step=101, values={"loss": 7.0}, host="node9")
    found = parsed(exposition.text(moved))
    assert found["train_step", of_rank(2)] == 101
    assert found["train_loss", of_rank(2)] == 7
    assert {dict(key).get("host") for name, key in found if name == "train_rank_info"} >= {"node9"}


def test_an_infinite_value_among_finite_ones_is_said_in_prometheus_words() -> None:
    state = with_rank(running(t=T0 + 500), 0, values={"loss": 1e308})
    state = with_rank(with_rank(state, 1, values={"loss": 1e308}), 2, values={"loss": math.inf})
    found = exposed(state)
    assert [found["train_loss", of_rank(rank)] for rank in (0, 1, 2)] == [1e308, 1e308, math.inf]


def test_a_thousand_ranks_are_rendered_in_a_moment() -> None:
    state = running(t=T0 + 500, ranks=1024)
    state = replace(
        state, ranks={n: replace(r, values=dict.fromkeys(FIELDS, 1.0)) for n, r in state.ranks.items()}
    )
    exposition = Exposition(Config())
    exposition.text(state)
    started_s = time.process_time()
    exposition.text(state)
    assert time.process_time() - started_s < 3.0


def span(rank: int, name: str) -> tuple[tuple[str, str], ...]:
    return (("name", name), *of_rank(rank))


def test_spans_of_a_step_have_their_names_as_a_label() -> None:
    state = with_rank(running(t=T0 + 500), 2, values={"span_fwd_bwd_s": 0.7, "span_gc_s": 0.1, "loss": 2.0})
    state = with_rank(state, 1, values={"span_fwd_bwd_s": 0.8})
    found = exposed(state, Config(limits=Limits(unknown_fields=True)))
    assert found["train_span_seconds", span(2, "fwd_bwd")] == 0.7
    assert found["train_span_seconds", span(1, "fwd_bwd")] == 0.8
    assert found["train_span_seconds", span(2, "gc")] == 0.1
    assert ("train_span_seconds", span(1, "gc")) not in found
    assert not [name for name, _ in found if name.startswith("train_field_span")], "told once"


def test_names_of_spans_are_bounded() -> None:
    values = {f"span_part_{number:03}_s": 0.1 for number in range(100)}
    exposition = Exposition(Config())
    found = parsed(exposition.text(with_rank(running(t=T0 + 500), 2, values=values)))
    assert sum(name == "train_span_seconds" for name, _ in found) == 32
    assert exposition.fields_left_out == 68


def test_spans_of_a_rank_that_fell_silent_are_no_figures_of_now() -> None:
    state = with_rank(running(t=T0 + 5000), 2, values={"span_fwd_bwd_s": 0.7}, heard_t=T0 + 3000)
    assert not [name for name, _ in exposed(state) if name == "train_span_seconds"]


def test_names_and_labels_of_any_length_leave_the_answer_short() -> None:
    """Lines are up to a mebibyte long, and a broken writer may fill them with one name."""
    long = "x" * 900_000
    state = with_rank(running(t=T0 + 500), 2, host=long, values={long: 1.0, f"span_{long}_s": 2.0})
    exposition = Exposition(Config(limits=Limits(unknown_fields=True)))
    assert len(exposition.text(state)) < 100_000
    assert exposition.fields_left_out == 2
