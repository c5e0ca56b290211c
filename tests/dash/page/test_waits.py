"""The tables of a hang stand before its drawing, of a thousand ranks as of eight."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dash.page.nights import night
from dash.page.read import Read
from dash.page.views import diagnosis, healthy, hung
from train_ledger.answer import HangAnswer, SlowAnswer, Suspect
from train_ledger.dash.page.waits import waits_part
from train_ledger.render.picture import Edge, Graph, Node, Picture

ATTACK = "</title></svg><script>alert(1)</script>"


@pytest.mark.parametrize("ranks", [8, 1024])
def test_table_first_then_the_drawing(ranks: int) -> None:
    html = waits_part(night(ranks, culprit=5))
    read = Read(html)
    assert html.index("has not come") < html.index("who waits for whom") < html.index("<svg")
    assert html.index("<td>ranks 0-4,6-7</td>") < html.index("<svg")
    assert "rank 5 culprit" in read.text
    drawn = [it for tag, it in read.tags if tag == "svg"]
    assert [it["role"] for it in drawn] == ["img", "img"]  # to the side, and for a phone from above to below
    assert [it["class"] for it in drawn] == ["graph", "graph column"]
    assert "<title>who waits for whom</title>" in html
    assert read.count("rect") <= 2 * 24
    assert len(html) < 60_000


def test_who_waits_is_told_in_a_row_each() -> None:
    text = Read(waits_part(night(64, culprit=5))).text
    assert "all_reduce, mesh_tp, number 2" in text
    assert "reduce_scatter, mesh_dp, number 2" in text


def test_where_no_drawing_was_kept_the_findings_tell_it() -> None:
    read = Read(waits_part(hung()))
    assert "ranks 0-4,6-7" in read.text
    assert "all_reduce, number 2891 of default_pg" in read.text
    assert "No drawing of it was kept." in read.text
    assert read.count("svg") == 0


def test_a_hang_without_dumps_is_said_to_be_one() -> None:
    view = replace(hung(), diagnosis=replace(diagnosis(), details=None))
    assert "Nothing to draw: the verdict rests on no Flight Recorder dump." in Read(waits_part(view)).text


def test_a_verdict_by_dumps_is_not_said_to_be_one_without() -> None:
    found = replace(diagnosis(), details=HangAnswer("cannot_tell"))
    text = Read(waits_part(replace(hung(), diagnosis=found))).text
    assert "no Flight Recorder dump" not in text
    assert "nobody waits in a collective" in text


def test_of_many_findings_the_others_are_not_said_to_be_drawn() -> None:
    details = diagnosis().details
    assert isinstance(details, HangAnswer)
    many = replace(diagnosis(), details=replace(details, findings=details.findings[:1] * 20))
    text = Read(waits_part(replace(hung(), diagnosis=many))).text
    assert "and 4 more, in the state as JSON" in text


def test_of_other_trouble_and_of_none_nothing_is_drawn() -> None:
    lost = replace(diagnosis(), cause="numeric.nan", details=None)
    assert waits_part(replace(hung(), diagnosis=lost)) == ""
    assert waits_part(healthy()) == ""


def test_a_picture_of_a_verdict_that_is_over_is_not_drawn() -> None:
    view = night()
    assert waits_part(replace(view, incidents=(), alerts=())) == ""


def test_nothing_of_a_dump_becomes_a_tag() -> None:
    def drawn(word: str) -> str:
        graph = Graph((Node((5,), 0, is_culprit=True), Node((4,), 1, text=word)), (Edge(1, 0, word),))
        return waits_part(night(picture=Picture(graph=graph)))

    assert [tag for tag, _ in Read(drawn(ATTACK)).tags] == [tag for tag, _ in Read(drawn("x")).tags]
    assert ATTACK in Read(drawn(ATTACK)).text


def test_of_many_waits_the_first_are_listed() -> None:
    nodes = (Node((0,), 0, is_culprit=True), *(Node((rank,), 1) for rank in range(1, 24)))
    edges = tuple(Edge(place, 0, "default_pg, number 1") for place in range(1, 24))
    assert "and 7 more, in the drawing" in waits_part(night(picture=Picture(graph=Graph(nodes, edges))))


def test_a_slow_run_has_its_step_and_its_suspects_there() -> None:
    suspects = (
        Suspect("slow.data", "ruled_out", "data_wait_s is 0.01 s, as before"),
        Suspect("slow.straggler.clock", "confirmed", "rank 5 computes 2.1 s", rise_s=1.1),
    )
    parts = {"compute_s": {"median": {"before_s": 1.0, "now_s": 2.1}, "longest": {"now_s": 9.0}}}
    slow = SlowAnswer(
        "slow",
        "slow.straggler.clock",
        before_s=1.0,
        now_s=2.1,
        compared_with="before",
        parts=parts,
        suspects=suspects,
    )
    view = replace(hung(), diagnosis=replace(diagnosis(), cause="slow.straggler.clock", details=slow))
    text = Read(waits_part(view)).text
    assert "compute_s1 s2.1 s+1.1 s9 s" in text
    assert text.index("slow.straggler.clock") < text.index("slow.data")
    assert "ruled out" in text
