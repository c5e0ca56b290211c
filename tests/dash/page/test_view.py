"""What the page knows of the verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dash.page.views import diagnosis, hung, incident
from train_ledger.answer import SlowAnswer, to_json
from train_ledger.dash.page.document import document
from train_ledger.dash.page.web import state_json


def test_a_verdict_that_an_earlier_keeper_found_is_read_from_the_journal() -> None:
    reborn = replace(hung(), diagnosis=None)
    assert reborn.current_diagnosis == diagnosis()
    broken = ({"kind": "verdict", "incident": incident().id, "diagnosis": {"cause": 7}},)
    assert replace(reborn, journal=broken).current_diagnosis is None


def test_a_verdict_of_a_slow_run_is_read_from_the_journal_too() -> None:
    slow = SlowAnswer("slow", "slow.straggler.software", "rank", culprits=(5,), suspects=())
    told = replace(diagnosis(), cause="slow.straggler.software", details=slow)
    entry = {"kind": "verdict", "incident": incident().id, "diagnosis": to_json(told)}
    reborn = replace(hung(), diagnosis=None, journal=(entry,))
    assert reborn.current_diagnosis == told


@pytest.mark.parametrize("t", [10**400, -(10**400), 1e308, -2e11])
def test_an_entry_at_no_time_is_shown_without_one_and_the_page_stands(t: float) -> None:
    view = hung()
    odd = tuple(
        {"t": t, "kind": kind, "incident": "one", "state": "running", "before": "stalled", "alert": "Odd"}
        for kind in (
            "incident_opened",
            "incident_closed",
            "state_changed",
            "alert_fired",
            "verdict",
            "recovered",
        )
    )
    shown = document(replace(view, journal=(*view.journal, *odd), of_incidents=odd, incidents=()))
    assert "inf" not in shown.partition('id="timeline"')[2].partition("</svg>")[0]
    assert json.loads(state_json(replace(view, journal=odd)))["journal"][0]["t"] is None
