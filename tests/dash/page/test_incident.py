"""What belongs to the open incident."""

from __future__ import annotations

from dataclasses import replace

from dash.page.nights import night
from dash.page.read import Read
from dash.page.views import healthy, hung, incident, stall
from dash.states import T0
from train_ledger.dash import Alert, Member
from train_ledger.dash.page.incident import incident_part


def test_what_opened_it_what_joined_and_what_was_held_back() -> None:
    joined = Alert("CheckpointSaveFailed", "page", {"run": "r42"}, T0 + 4995, "a save failed", 1.0)
    held = replace(stall(), name="TrainingProcessGone", inhibited=True)
    record = replace(stall(), name="DataLoadingWait", level="record")
    both = replace(incident(), members=(*incident().members, Member(joined, resolved_t=T0 + 4998)))
    view = replace(night(), incidents=(both,), alerts=(stall(), held, record))
    text = Read(incident_part(view)).text
    assert "TrainingStepStalled opened it" in text
    assert "CheckpointSaveFailed joined" in text
    assert "resolved" in text
    assert text.index("held back") < text.index("TrainingProcessGone")
    assert "inhibited: nobody is told" in text
    assert text.index("on record") < text.index("DataLoadingWait")


def test_what_was_taken_and_written() -> None:
    read = Read(incident_part(night()))
    assert "8 dumps and 8 stacks in 7.9 s" in read.text
    links = [attributes["href"] for tag, attributes in read.tags if tag == "a"]
    assert links == [f"reports/{incident().id}.html", f"reports/{incident().id}.md"]


def test_before_the_verdict_nothing_is_written_and_nobody_who_was_not_asked_looks() -> None:
    view = replace(hung(), diagnosis=None, journal=())
    read = Read(incident_part(view))
    assert "nothing: [respond] on_page is not set" in read.text
    assert read.count("a") == 0


def test_without_an_incident_there_is_none() -> None:
    assert incident_part(healthy()) == ""
