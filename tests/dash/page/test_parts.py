"""The HTML of the page: complete without a script, and nothing from a log is markup."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dash.page.read import Read
from dash.page.views import HOSTILE, diagnosis, healthy, hung
from dash.states import T0, running
from train_ledger.answer import HangAnswer, Impact
from train_ledger.dash.page.document import document
from train_ledger.dash.page.markup import Safe, element
from train_ledger.dash.page.parts import parts
from train_ledger.dash.page.view import PageView
from train_ledger.ledger.state import RankState, RunState


def test_what_is_wrong_comes_before_how_it_stands() -> None:
    text = Read(document(hung())).text
    order = [
        "culprit: rank 5 on node0",
        "hang.host",
        "py-spy dump",
        "no step completed since 51300",
        "since the last step",
    ]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert "dcgm: no exporter was reached" in text
    assert "3 × not JSON" in text


def test_a_hostile_host_name_stays_text() -> None:
    read = Read(document(hung()))
    assert [attributes for tag, attributes in read.tags if tag == "script"] == [
        {"src": "static/page.js", "defer": None}
    ]
    assert HOSTILE in read.text


def test_nothing_is_inline_that_the_policy_would_refuse() -> None:
    for _, attributes in Read(document(hung())).tags:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]


def test_a_command_is_copied_whole_and_as_it_is() -> None:
    copied = [attributes["data-copy"] for tag, attributes in Read(document(hung())).tags if tag == "button"]
    assert copied == ["py-spy dump --pid 1005 && echo '<done>'"]


def test_a_thousand_ranks_are_summed_up_not_listed() -> None:
    made = parts(hung(ranks=1024, culprit=700))
    read = Read(made["ranks"] + made["rank_list"])
    assert len([tag for tag, _ in read.tags if tag == "tr"]) < 30
    assert len([tag for tag, _ in read.tags if tag == "rect"]) == 1024
    assert "1 culprit, 1023 waiting" in read.text
    assert read.text.index("culprit 1 step behind") < read.text.index("waiting", read.text.index("pid"))


def test_a_part_is_the_same_as_long_as_nothing_it_shows_changed() -> None:
    before, after = healthy(), replace(healthy(), state=replace(healthy().state, t=T0 + 501))
    changed = {name for name, html in parts(after).items() if parts(before)[name] != html}
    assert changed == {"clock"}


def test_a_run_of_which_nothing_is_known_has_a_page() -> None:
    text = Read(document(PageView(RunState("r42", T0)))).text
    assert "No rank has been heard of yet." in text
    assert "how many ranks there should be" in text


def test_of_a_run_of_which_nothing_was_heard_it_is_said_what_is_missing() -> None:
    empty = PageView(RunState("r42", T0), run_path="runs/r42")
    text = Read(parts(empty)["verdict"]).text
    assert "once their training code has called train_ledger.start('runs/r42')" in text
    assert "train_ledger.start" not in parts(healthy())["verdict"]


def test_before_the_first_step_what_steps_tell_is_not_called_missing() -> None:
    untold = ("25 of 30 causes could not be told now", *(f"cause {number}" for number in range(24)))
    begun = replace(healthy(), cannot_tell=untold)
    begins = replace(begun, state=replace(begun.state, step=None, state="starting"))
    assert "25 of 30" in parts(begun)["unobserved"]
    assert "25 of 30" not in parts(begins)["unobserved"]
    assert "said once there are steps" in parts(begins)["unobserved"]


def test_what_is_suspected_and_what_mends_it_stand_with_the_verdict() -> None:
    told = diagnosis()
    assert isinstance(told.details, HangAnswer)
    finding = replace(
        told.details.findings[0], cause_suspected="its loader is dead", fix="look at the storage"
    )
    told = replace(told, details=replace(told.details, findings=(finding,)))
    text = Read(parts(replace(hung(), diagnosis=told))["verdict"]).text
    assert text.index("its loader is dead") < text.index("look at the storage") < text.index("next:")


def test_what_cost_nothing_yet_is_not_told_as_a_loss() -> None:
    """Of a run that goes on the verdict's impact is the time since its last step."""
    at_once = replace(hung(), diagnosis=replace(diagnosis(), impact=Impact(0.0, 0.0, 0.0)))
    assert "lost by then" in parts(hung())["verdict"]
    assert "lost by then" not in parts(at_once)["verdict"]


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_any_string_and_any_time_make_a_page(text: str, t: float) -> None:
    state = replace(
        running(t=T0), run=text, ranks={0: RankState(0, host=text, exception=text, heard_t=t, step_t=t)}
    )
    read = Read(
        document(PageView(state, journal=({"kind": text, "summary": text, "t": t},), not_observed=(text,)))
    )
    assert [tag for tag, _ in read.tags].count("script") == 1


def test_only_what_an_element_made_is_not_escaped() -> None:
    inner = element("b", "<x>", title='"&')
    assert element("p", inner, "<y>") == '<p><b title="&quot;&amp;">&lt;x&gt;</b>&lt;y&gt;</p>'
    assert isinstance(inner, Safe)
    assert element("i", "a\x1b[2Jb\u202e") == "<i>ab\ufffd</i>"


def test_what_could_not_be_told_tonight_is_said() -> None:
    lines = tuple(f"hang.host: wanted stacks {number}" for number in range(20))
    html = document(replace(healthy(), cannot_tell=lines))
    assert "could not be told tonight" in html
    assert "wanted stacks 7" in html
    assert "and 12 more: train-ledger coverage" in html
    assert "could not be told tonight" not in document(replace(healthy(), cannot_tell=()))


def test_under_a_verdict_it_is_still_said_that_the_run_cannot_be_read() -> None:
    lost = replace(hung().state, unreadable="/runs/r42: Stale file handle", unreadable_since_t=T0)
    text = Read(document(replace(hung(), state=lost))).text
    assert "the run itself cannot be read: /runs/r42: Stale file handle" in text
    assert "cannot be read" not in Read(document(hung())).text


def test_what_a_person_took_by_hand_is_not_denied() -> None:
    """The journal tells of the keeper alone, and its page names the command by which a person looks."""
    waiting = replace(hung(), diagnosis=None, journal=(), run_path="runs/r 42")
    text = Read(parts(waiting)["verdict"]).text
    assert "The keeper has not looked for the reason." in text
    assert "train-ledger respond 'runs/r 42'" in text
    assert "nobody" not in text.lower()
