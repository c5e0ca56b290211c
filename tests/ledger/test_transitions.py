"""The table of moves, what is read from it, and the page that is drawn from it."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

import states_page
from states_drawing import drawing

from train_ledger.answer import STATES
from train_ledger.dash import RULES
from train_ledger.ledger.machine import ORDER
from train_ledger.ledger.transitions import MOVES, move_between, restarts_by_itself


def test_the_page_is_current() -> None:
    assert states_page.PAGE.read_text() == states_page.page(), "run `python tools/states_page.py`"
    assert states_page.DRAWING.read_text() == drawing(MOVES), "run `python tools/states_page.py`"


def test_the_page_has_every_state_and_every_move() -> None:
    text = states_page.page()
    assert f"({states_page.DRAWING.name})" in text
    assert all(f"\n| `{state}` | " in text for state in STATES)
    assert all(move.by in text for move in MOVES)


def test_every_arrow_is_drawn_with_its_number_and_its_kind() -> None:
    text = drawing(MOVES)
    arrows = [(number, move.kind) for number, move in enumerate(MOVES, 1) for _ in move.drawn]
    assert Counter(map(int, re.findall(r">(\d+)</text>", text))) == Counter(it for it, _ in arrows)
    assert text.count("stroke-dasharray") == sum(kind == "person" for _, kind in arrows)
    assert all(f">{state}</text>" in text for state in STATES)


def test_there_is_one_table_of_states() -> None:
    assert set(ORDER) == set(STATES)
    assert {move.after for move in MOVES} == set(STATES)


def test_a_pair_of_states_stands_in_one_row() -> None:
    pairs = [(before, move.after) for move in MOVES for before in move.before]
    assert len(pairs) == len(set(pairs))
    assert all(before in STATES and before != after for before, after in pairs)
    assert all(set(move.drawn) <= set(move.before) for move in MOVES)


def test_what_pages_is_a_page_and_what_goes_by_itself_is_none() -> None:
    level = {rule.name: rule.level for rule in RULES}
    for move in MOVES:
        levels = {level[alert] for alert in move.alerts}
        assert levels == {"page"} if move.kind == "page" else True, move
        assert move.kind != "automatic" or levels <= {"record"}, move


def test_nobody_but_a_person_restarts_what_a_restart_did_not_help() -> None:
    alone = {state for state in STATES if restarts_by_itself(state)}
    assert alone == {"stalled", "hardware_fault", "running", "recovering", "starting"}


def test_the_ways_of_the_drawing_that_the_article_draws() -> None:
    ways = [
        ("running", "stalled", "page"),
        ("running", "numeric_fault", "page"),
        ("running", "hardware_fault", "page"),
        ("stalled", "restarting", "automatic"),
        ("numeric_fault", "restarting", "person"),
        ("hardware_fault", "restarting", "automatic"),
        ("hardware_fault", "stalled", "page"),
        ("restarting", "recovering", "automatic"),
        ("recovering", "running", "automatic"),
        ("recovering", "escalated", "page"),
        ("recovering", "stopped", "page"),
        ("escalated", "restarting", "person"),
        ("escalated", "stopped", "person"),
    ]
    drawn = set(chain.from_iterable(((it, move.after) for it in move.drawn) for move in MOVES))
    for before, after, kind in ways:
        move = move_between(before, after)
        assert move is not None
        assert move.kind == kind
        assert (before, after) in drawn


def test_at_the_first_look_nothing_is_known_of_a_move() -> None:
    assert move_between(None, "running") is None
    assert move_between("finished", "escalated") is None
