"""Whatever stands in a journal, a draft and a report come of it, or one line that says why not."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from train_ledger.config import Config
from train_ledger.ledger.journal import KINDS
from train_ledger.ops.markdown import markdown_of
from train_ledger.ops.postmortem import as_markdown, as_record, postmortem, report_of_postmortem
from train_ledger.ops.weekly import report_of_weekly, weekly
from train_ledger.render import as_html, as_json
from train_ledger.run_dir import RunDir, RunDirError

T = 1_800_000_000.0
_words = st.sampled_from(
    [
        "restarting",
        "running",
        "recovering",
        "act",
        "restart",
        "hang.host",
        "page",
        "<b>",
        "[a](b)",
        "\x1b[31m",
    ]
)
_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(T - 9e5, T + 9e5) | _words | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cause", "since_t", "ranks", "recovery", "labels", "alert"]), inner
        )
    ),
    max_leaves=6,
)


@st.composite
def _entries(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Entries of every kind, with the right keys and anything for their values."""
    entries: list[dict[str, Any]] = [{"t": T, "kind": "incident_opened", "incident": "i1", "alert": "X"}]
    for kind in draw(st.lists(st.sampled_from(sorted(KINDS)), max_size=12)):
        told = {key: draw(_values) for key in KINDS[kind]}
        t = draw(st.floats(T - 4000, T + 90_000) | _values)
        entries.append({**told, "incident": draw(st.just("i1") | _values), "t": t, "kind": kind})
    return entries


@pytest.mark.parametrize("of_journal_alone", [True, False])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=_entries())
def test_a_draft_of_any_journal(
    tmp_path_factory: pytest.TempPathFactory, of_journal_alone: bool, entries: list[dict[str, Any]]
) -> None:
    run = RunDir(tmp_path_factory.mktemp("run"))
    run.ledger.mkdir()
    run.journal.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    draft = postmortem(run, Config(), incident="i1", of_journal_alone=of_journal_alone)
    for text in (as_markdown(draft), as_html(report_of_postmortem(draft)), as_json(as_record(draft))):
        assert "\x1b" not in text
    assert "<b>" not in as_markdown(draft)
    assert all(it is None or (it >= 0 and math.isfinite(it)) for it in draft.split.parts_s.values())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=_entries())
def test_a_report_of_any_journal(
    tmp_path_factory: pytest.TempPathFactory, entries: list[dict[str, Any]]
) -> None:
    run = RunDir(tmp_path_factory.mktemp("run"))
    run.ledger.mkdir()
    run.journal.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    told = report_of_weekly(weekly([(run, Config())], T - 1000, T + 1000))
    assert "<b>" not in markdown_of(told)


def test_a_state_that_is_no_text_is_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    run = RunDir(tmp_path_factory.mktemp("run"))
    run.ledger.mkdir()
    opened = {"t": T, "kind": "incident_opened", "incident": "i1", "alert": "X"}
    found = {"t": T + 1, "kind": "verdict", "incident": "i1", "diagnosis": {"since_t": T - 10}}
    moved = {"t": T + 2, "kind": "state_changed", "incident": "i1", "state": [], "before": {}}
    run.journal.write_text("".join(f"{json.dumps(entry)}\n" for entry in (opened, found, moved)))
    assert as_markdown(postmortem(run, Config(), incident="i1"))


def test_a_journal_of_no_incident(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(RunDirError, match="holds no incident"):
        postmortem(RunDir(tmp_path_factory.mktemp("run")), Config())
