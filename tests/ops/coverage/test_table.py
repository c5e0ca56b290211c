"""The table of causes and signals names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from train_ledger.answer import CAUSES
from train_ledger.fields import EVENTS, FIELDS, PHASES
from train_ledger.ops.coverage import ROWS, SIGNALS
from train_ledger.ops.coverage.arriving import SAVES
from train_ledger.signals.flight import VARIABLES
from train_ledger.sources.hardware.gpu_fields import WANTED


def test_every_cause_has_one_row():
    assert [row.cause for row in ROWS] == [*dict.fromkeys(row.cause for row in ROWS)]
    assert {row.cause for row in ROWS} == CAUSES.keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.cause)
def test_a_row_needs_signals_that_there_are(row):
    assert row.needs
    for group in row.needs:
        assert group
        assert set(group) <= SIGNALS.keys()


def test_every_signal_decides_something():
    assert {name for row in ROWS for group in row.needs for name in group} == SIGNALS.keys()


@pytest.mark.parametrize("signal", SIGNALS.values(), ids=lambda signal: signal.name)
def test_a_signal_is_by_its_right_name_and_says_how_it_is_had(signal):
    if signal.kind == "field":
        assert signal.name in FIELDS
    if signal.kind == "gpu":
        assert signal.name in WANTED
    assert signal.get
    assert signal.lost
    phases = re.findall(r"monitor\.phase\('(\w+)'\)", signal.get)
    assert set(phases) <= set(PHASES)
    variables = re.findall(r"\b(TORCH_\w+)=", signal.get)
    assert set(variables) <= {variable.name for variable in VARIABLES}


def test_the_events_that_are_looked_for_are_written():
    assert set(EVENTS) >= SAVES
    assert {"run_start", "phase_start", "phase_end", "warning"} <= set(EVENTS)


DOCUMENT = (Path(__file__).parents[3] / "docs" / "coverage.md").read_text()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.cause)
def test_the_document_says_what_decides_a_cause(row):
    (line,) = re.findall(rf"^\| `{re.escape(row.cause)}` \|.*$", DOCUMENT, re.MULTILINE)
    needs = line.split(" | ")[2].replace("`", "")
    assert needs == "; ".join(" or ".join(group) for group in row.needs)


def test_the_document_says_how_each_signal_is_had():
    for signal in SIGNALS.values():
        assert f"| {signal.lost} | {signal.get} |" in DOCUMENT
