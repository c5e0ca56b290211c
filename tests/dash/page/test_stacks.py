"""The culprit's stack is open, the others are merged, and why there are none is said."""

from __future__ import annotations

from dataclasses import replace

from dash.page.nights import HOSTILE_FRAME, night
from dash.page.read import Read
from dash.page.views import healthy, hung, incident
from train_ledger.dash.page.stacks import stacks_part
from train_ledger.render.picture import Picture, Stack


def test_the_culprit_s_stack_is_open_and_the_others_are_one() -> None:
    read = Read(stacks_part(night(1024, culprit=700)))
    boxes = [attributes for tag, attributes in read.tags if tag == "details"]
    assert "open" in boxes[0]
    assert "open" not in boxes[1]
    assert "rank 700 culprit, apart from the others" in read.text
    assert "ranks 0-699,701-1023:" in read.text
    assert "step_20\n" in read.text
    assert "step_45" not in read.text


def test_a_frame_is_text_and_each_its_own_line() -> None:
    read = Read(stacks_part(night()))
    assert f"/job/train.py:7 {HOSTILE_FRAME}\n/job/train.py:0 step_0\n" in read.text
    assert read.count("img") == 0


def test_long_stacks_and_many_of_them_are_bounded() -> None:
    stacks = tuple(Stack((rank,), "x" * 5000, ("y" * 5000,) * 100) for rank in range(100))
    html = stacks_part(night(picture=Picture(stacks=stacks)))
    assert "and 80 more, in the report" in html
    assert "… and 60 calls more" in html
    assert len(html) < 500_000


def test_why_there_are_none_is_said() -> None:
    assert "The keeper took no stacks: [respond] on_page is not set." in Read(stacks_part(hung())).text
    started = {"kind": "response_started", "incident": incident().id, "on_page": ["dump"]}
    view = replace(hung(), of_incidents=(started,))
    assert "[respond] on_page asks only for dump" in Read(stacks_part(view)).text
    started["on_page"] = ["dump", "stacks"]
    assert "No stacks yet: they are still being taken." in Read(stacks_part(view)).text


def test_stacks_that_are_there_are_not_said_not_to_be() -> None:
    """A person took them, by the command that the page names."""
    by_hand = replace(night(), of_incidents=(), journal=hung().journal)
    text = Read(stacks_part(by_hand)).text
    assert "rank 5 culprit" in text
    assert "no stacks" not in text.lower()


def test_of_a_run_that_goes_on_none_are_missed() -> None:
    """A failed save, say: where its ranks stand is no question."""
    view = hung()
    goes_on = replace(view.state, state="running", last_step_t=view.state.t - 1)
    assert stacks_part(replace(view, state=goes_on)) == ""


def test_without_an_incident_nothing_is_said() -> None:
    assert stacks_part(healthy()) == ""
