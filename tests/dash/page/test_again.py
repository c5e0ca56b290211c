"""Since when a run is in its state, whatever stands in its journal."""

from __future__ import annotations

from dash.states import T0, running
from train_ledger.dash.page.again import state_since_t
from train_ledger.dash.page.view import PageView


def test_a_state_that_is_no_text_is_no_state_that_moves() -> None:
    entries = (
        {"t": T0 + 5, "kind": "state_changed", "state": "running", "before": "stalled"},
        {"t": T0 + 6, "kind": "state_changed", "state": [], "before": {}},
    )
    view = PageView(running(t=T0 + 10), journal=entries)
    assert state_since_t(view) == view.state.since_t
    assert state_since_t(PageView(running(t=T0 + 10), journal=entries[:1])) == T0 + 5
