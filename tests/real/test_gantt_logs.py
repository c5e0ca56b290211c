"""The Gantt of structured logs that torchtitan's own module wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ops.traces import drawn, of

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs" / "13_torchtitan_structured"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="real logs are not here")


def test_every_span_that_ended_is_drawn_once_with_the_duration_that_was_measured() -> None:
    records = [json.loads(line) for path in LOGS.iterdir() for line in path.read_text().splitlines()]
    ended = [it for it in records if it["log_type_name"].endswith("_end")]
    gantt, events = drawn(LOGS)
    spans = of(events, cat="span")
    assert len(spans) == len(ended) == 16
    assert (gantt.tally.unfinished, gantt.tally.not_read_lines) == (0, ())
    measured_s = sorted(it["args"]["measured_s"] for it in spans)
    assert measured_s == pytest.approx(sorted(it["value"] / 1e3 for it in ended))
    assert all(abs(it["dur"] / 1e6 - it["args"]["measured_s"]) < 0.001 for it in spans)


def test_a_save_that_failed_is_marked_though_its_span_ended() -> None:
    _, events = drawn(LOGS)
    assert [(it["name"], it["pid"]) for it in of(events, cat="fault")] == [
        ("checkpoint_save failed", 0),
        ("checkpoint_save failed", 1),
    ]
    assert {it["args"]["step"] for it in of(events, cat="span", name="fwd_bwd")} == {21, 22, 23}
