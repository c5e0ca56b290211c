"""What the page knows of the verdict."""

from __future__ import annotations

from dataclasses import replace

from dash.page.views import diagnosis, hung, incident
from train_ledger.answer import SlowAnswer, to_json


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
