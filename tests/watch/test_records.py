"""What stays of an incident: the picture beside the verdict is the one that was drawn, or none."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.render import Picture, as_json
from train_ledger.render.picture import Cell, Column, Edge, Graph, Node, Stack, Step, Table
from train_ledger.run_dir import RunDir
from train_ledger.watch.records import kept_picture, write_records

NAME = "20261130T031205Z-TrainingStepStalled"


def picture(word: str) -> Picture:
    table = Table(
        word, (Column((0, 1)), Column((2,), "culprit")), (Step("1", (Cell(word, "odd"),), here=True),)
    )
    graph = Graph((Node((2,), 0, is_culprit=True), Node((0, 1), 1, text=word)), (Edge(1, 0, word),))
    return Picture(((table,),), graph, None, (Stack((2,), word, (word,), is_odd=True),))


def written(folder: Path, drawn: Picture | None) -> RunDir:
    run_dir = RunDir(folder)
    said = [*write_records(run_dir, Config(), NAME, Diagnosis("stalled", "hang.host", (2,)), drawn)]
    assert said[0].startswith("report ")
    return run_dir


@settings(max_examples=20, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_a_later_keeper_draws_the_same(tmp_path_factory: pytest.TempPathFactory, word: str) -> None:
    run_dir = written(tmp_path_factory.mktemp("run"), picture(word))
    assert kept_picture(run_dir, NAME) == picture(word)


def test_half_a_pair_of_utf_16_is_no_reason_to_lose_it(tmp_path: Path) -> None:
    kept = kept_picture(written(tmp_path, picture("frame \ud800")), NAME)
    assert kept is not None
    assert kept.stacks[0].frames == ("frame \ufffd",)


def test_beside_a_verdict_without_a_picture_no_earlier_one_stays(tmp_path: Path) -> None:
    run_dir = written(tmp_path, picture("x"))
    written(tmp_path, None)
    assert kept_picture(run_dir, NAME) is None


@pytest.mark.parametrize("name", [None, 7, "", "..", "../journal", "never-written", "a/b", "a\0b", "\ud800"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: object) -> None:
    assert kept_picture(written(tmp_path, picture("x")), name) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"stacks": [7]}',
        b"\xff\xfe",
        b'{"graph": {"nodes": []}}',
        b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_is_no_picture_is_none(tmp_path: Path, content: bytes) -> None:
    run_dir = written(tmp_path, picture("x"))
    (run_dir.incidents / f"{NAME}.picture.json").write_bytes(content)
    assert kept_picture(run_dir, NAME) is None


def test_an_edge_that_leads_nowhere_is_not_drawn(tmp_path: Path) -> None:
    run_dir = written(tmp_path, picture("x"))
    odd = replace(picture("x"), graph=Graph((Node((2,), 0),), (Edge(7, 0, "x"),)))
    (run_dir.incidents / f"{NAME}.picture.json").write_text(as_json(asdict(odd)))
    assert kept_picture(run_dir, NAME) is None


def test_what_no_keeper_draws_is_not_drawn_every_second(tmp_path: Path) -> None:
    run_dir = written(tmp_path, picture("x"))
    many = tuple(Node((rank,), 1) for rank in range(200))
    for graph in (Graph(many, ()), Graph(many[:2], (Edge(1, 0, "x"),) * 2000)):
        forged = replace(picture("x"), graph=graph)
        (run_dir.incidents / f"{NAME}.picture.json").write_text(as_json(asdict(forged)))
        assert kept_picture(run_dir, NAME) is None
