"""Incidents that are over: verdict, how long, what they cost, and where to read on."""

from __future__ import annotations

from dataclasses import replace

from dash.page.nights import EARLIER, night
from dash.page.read import Read
from dash.page.views import healthy, incident
from dash.states import T0
from train_ledger.dash.page.earlier import earlier_part


def test_each_has_its_verdict_its_length_and_its_links() -> None:
    read = Read(earlier_part(night()))
    assert "11-24 15:45Z, lasted 10 min 0 s, 1.3 GPU-hours, 3.33 USD" in read.text
    assert "nobody to blame: all came, none finishes, no hardware fault seen (hang.fabric)" in read.text
    assert [it["href"] for tag, it in read.tags if tag == "a"] == [
        f"reports/{EARLIER}.html",
        f"reports/{EARLIER}.md",
    ]
    assert incident().id not in str(read.tags)


def test_one_without_a_verdict_says_so_and_has_no_report() -> None:
    entries = (
        {"t": T0, "kind": "incident_opened", "incident": "one", "alert": "TrainingLossNotFinite"},
        {"t": T0 + 60, "kind": "incident_closed", "incident": "one"},
    )
    read = Read(earlier_part(replace(healthy(), of_incidents=entries)))
    assert "lasted 1 min 0 s" in read.text
    assert "TrainingLossNotFinite; no verdict was found" in read.text
    assert read.count("a") == 0


def test_of_many_the_newest_are_listed() -> None:
    entries = tuple(
        {"t": T0 + number, "kind": kind, "incident": f"{number}"}
        for number in range(12)
        for kind in ("incident_opened", "incident_closed")
    )
    read = Read(earlier_part(replace(healthy(), of_incidents=entries)))
    assert read.count("li") == 8
    assert "and 4 more: train-ledger report" in read.text


def test_where_there_was_none_nothing_is_said() -> None:
    assert earlier_part(healthy()) == ""
    open_one = ({"t": T0, "kind": "incident_opened", "incident": "one"},)
    assert earlier_part(replace(healthy(), of_incidents=open_one)) == ""
    odd = ({"t": "soon", "kind": "incident_closed", "incident": "one"}, {"kind": 7, "incident": [1]})
    assert earlier_part(replace(healthy(), of_incidents=odd)) == ""
